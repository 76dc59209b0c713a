// The table of a run's decisions, of which only the rows in sight exist, and the drawer with one decision.
// Text of others enters through textContent; the drawer is markup of this server.
// @ts-check
(() => {
  'use strict';
  const log = /** @type {HTMLElement | null} */ (document.querySelector('.log'));
  const drawer = /** @type {HTMLDialogElement | null} */ (document.getElementById('decision'));
  if (!log || !drawer) return;
  const { send, complain, debounce } = /** @type {any} */ (window).pitboss;
  const run = log.dataset.run;
  const form = /** @type {HTMLFormElement} */ (log.querySelector('form'));
  const view = /** @type {HTMLElement} */ (log.querySelector('.log-view'));
  const body = /** @type {HTMLElement} */ (log.querySelector('.log-body'));
  const shownText = /** @type {HTMLOutputElement} */ (log.querySelector('.shown'));
  const content = /** @type {HTMLElement} */ (drawer.querySelector('.content'));
  const PAGE = 100;
  const KEPT_PAGES = 40;
  const SPARE = 8; // rows above and below those in sight
  const NAMES = /** @type {Record<string, string>} */ ({ allowed: '✓ Allowed', reduced: '✓ Reduced', refused: '✕ Refused', noop: '· No-op' });

  let total = 0;
  let selected = -1;
  let generation = 0;
  let rowHeight = 52;
  /** @type {Map<number, any[] | Promise<void>>} */
  let pages = new Map();
  /** @type {Map<number, HTMLElement>} */
  const nodes = new Map();

  const conditions = () => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (String(value).trim() && value !== 'all') query.set(name, String(value).trim());
    return query;
  };
  const outcome = /** @type {HTMLSelectElement} */ (form.elements.namedItem('outcome'));
  /** @param {number} index */
  const rowAt = (index) => {
    const page = pages.get(Math.floor(index / PAGE));
    return Array.isArray(page) ? page[index % PAGE] : undefined;
  };

  /** @param {number} number */
  const load = async (number) => {
    if (pages.has(number)) { await pages.get(number); return; }
    const mine = generation;
    const query = conditions();
    query.set('skip', String(number * PAGE));
    query.set('limit', String(PAGE));
    const loading = send('GET', `/api/runs/${run}/decisions?${query}`).then((/** @type {any} */ reply) => {
      if (mine !== generation) return;
      pages.delete(number);
      pages.set(number, reply.decisions);
      for (const old of pages.keys()) { if (pages.size <= KEPT_PAGES) break; pages.delete(old); }
      total = reply.total;
      measure();
      render();
    });
    pages.set(number, loading);
    try {
      await loading;
    } catch (error) {
      if (mine === generation) { pages.delete(number); complain(error); }
    }
  };

  const measure = () => {
    rowHeight = parseFloat(getComputedStyle(view).getPropertyValue('--row')) || rowHeight;
    body.style.height = `${total * rowHeight}px`;
    view.setAttribute('aria-rowcount', String(total));
    shownText.textContent = `${total.toLocaleString('en-US')} ${total === 1 ? 'row' : 'rows'}`;
  };
  /** @param {string} name @param {string} style @param {string} text */
  const cell = (name, style, text) => {
    const element = document.createElement(name);
    element.className = style;
    element.textContent = text;
    return element;
  };
  const clock = (/** @type {string} */ at) => at.slice(0, 16).replace('T', ' ');

  /** @param {number} index */
  const makeRow = (index) => {
    const row = rowAt(index);
    const element = document.createElement('div');
    element.setAttribute('role', 'row');
    element.setAttribute('aria-rowindex', String(index + 1));
    element.id = `row-${index}`;
    element.className = `log-row ${row && row.outcome in NAMES ? row.outcome : 'noop'}${index === selected ? ' selected' : ''}`;
    element.style.transform = `translateY(${index * rowHeight}px)`;
    element.dataset.index = String(index);
    if (!row) { element.append(cell('span', 'muted', '…')); element.dataset.empty = 'yes'; return element; }
    const when = cell('span', 'when', clock(row.tick_at));
    if (row.times > 1) when.append(cell('small', '', `to ${clock(row.until)}`));
    const words = cell('span', 'asked', row.words.charAt(0).toUpperCase() + row.words.slice(1) + (row.times > 1 ? ` × ${row.times.toLocaleString('en-US')}` : ''));
    const reason = cell('span', 'why', row.reason);
    reason.dir = 'auto';
    const verdict = cell('span', 'judged', '');
    verdict.append(cell('span', 'verdict', NAMES[row.outcome] || row.outcome));
    for (const word of [row.code, ...row.flags]) if (word) verdict.append(' ', cell('code', '', word));
    for (const part of [when, words, reason, verdict]) { part.setAttribute('role', 'gridcell'); element.append(part); }
    return element;
  };
  const visible = () => {
    const top = Math.max(0, view.scrollTop - body.offsetTop);
    const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
    return [first, Math.min(total, first + Math.ceil(view.clientHeight / rowHeight) + 2 * SPARE)];
  };
  const render = () => {
    const [first, last] = visible();
    for (const [index, node] of nodes) {
      if (index < first || index >= last || (node.dataset.empty && rowAt(index))) { node.remove(); nodes.delete(index); }
    }
    for (let index = first; index < last; index += 1) {
      if (!nodes.has(index)) { const node = makeRow(index); nodes.set(index, node); body.append(node); }
    }
    for (let page = Math.floor(first / PAGE); page <= Math.floor(Math.max(last - 1, 0) / PAGE); page += 1) if (total && !pages.has(page)) load(page);
  };
  let waiting = false;
  const soon = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; render(); }); } };
  const redraw = () => { for (const node of nodes.values()) node.remove(); nodes.clear(); measure(); render(); };
  const restart = async () => {
    generation += 1;
    pages = new Map();
    selected = -1;
    for (const node of nodes.values()) node.remove();
    nodes.clear();
    view.scrollTop = 0;
    const query = conditions();
    if (outcome.value === outcome.options[0].value) query.delete('outcome'); // what the table opens with
    if (outcome.value === 'all') query.set('outcome', 'all');
    history.replaceState(null, '', `${location.pathname}${query.size ? `?${query}` : ''}${location.hash}`);
    await load(0);
  };

  // Selection.
  /** @param {number} index */
  const select = (index) => {
    if (!total) return;
    nodes.get(selected)?.classList.remove('selected');
    selected = Math.min(Math.max(index, 0), total - 1);
    const [top, room] = [selected * rowHeight, view.clientHeight - body.offsetTop];
    if (top < view.scrollTop) view.scrollTop = top;
    else if (top + rowHeight > view.scrollTop + room) view.scrollTop = top + rowHeight - room;
    render();
    nodes.get(selected)?.classList.add('selected');
    view.setAttribute('aria-activedescendant', `row-${selected}`);
    const row = rowAt(selected);
    if (row) announce(Date.parse(row.tick_at));
  };
  const announce = (/** @type {number | null} */ at) => document.dispatchEvent(new CustomEvent('decision-selected', { detail: { at } }));
  view.addEventListener('scroll', soon);
  addEventListener('resize', debounce(redraw, 100));
  body.addEventListener('click', (event) => {
    const node = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest('.log-row'));
    if (!node) return;
    select(Number(node.dataset.index));
    openSelected();
  });
  view.addEventListener('keydown', (event) => {
    const page = Math.max(1, Math.floor((view.clientHeight - body.offsetTop) / rowHeight) - 1);
    const jump = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -total, End: total }[event.key];
    if (jump) { event.preventDefault(); select(selected < 0 && jump > 0 ? 0 : selected + jump); }
  });
  document.addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, textarea, select, [contenteditable]')) return;
    if (event.key === 'j' || event.key === 'k') {
      event.preventDefault();
      if (drawer.open) step(event.key === 'j' ? 'next' : 'previous');
      else select(selected < 0 ? 0 : selected + (event.key === 'j' ? 1 : -1));
    } else if (event.key === 'Enter' && !drawer.open && selected >= 0 && !target.closest('a, button, summary, svg')) {
      event.preventDefault();
      openSelected();
    }
  });
  const openSelected = async () => {
    await load(Math.floor(selected / PAGE));
    const row = rowAt(selected);
    if (row) open(row.seq);
  };

  // The drawer.
  let opening = 0;
  /** @param {number | string} seq */
  const open = async (seq) => {
    opening += 1;
    const mine = opening;
    try {
      const reply = await fetch(`/runs/${run}/decisions/${seq}?${conditions()}`, { headers: { Accept: 'text/html' } });
      if (mine !== opening) return;
      if (!reply.ok) throw new Error(`there is no decision ${seq}`);
      const place = document.createElement('template');
      place.innerHTML = await reply.text(); // markup of this server
      content.replaceChildren(place.content);
      const article = /** @type {HTMLElement} */ (content.querySelector('.decision'));
      const position = article.dataset.position;
      if (position !== undefined && Number(position) !== selected) select(Number(position));
      announce(Number(article.dataset.at));
      history.replaceState(null, '', `${location.pathname}${location.search}#d${seq}`);
      if (!drawer.open) drawer.showModal();
      drawer.scrollTop = 0;
    } catch (error) {
      complain(error);
    }
  };
  /** @param {'next' | 'previous'} where */
  const step = (where) => {
    const seq = /** @type {HTMLElement | null} */ (content.querySelector('.decision'))?.dataset[where];
    if (seq !== undefined) open(seq);
  };
  drawer.addEventListener('close', () => {
    history.replaceState(null, '', location.pathname + location.search);
    view.focus({ preventScroll: true });
  });
  content.addEventListener('click', (event) => {
    const target = /** @type {Element} */ (event.target);
    if (target.closest('[data-do=next-decision]')) step('next');
    else if (target.closest('[data-do=previous-decision]')) step('previous');
  });

  // A mark on a chart and a link in the report lead to their decision.
  document.addEventListener('click', (event) => {
    const link = /** @type {Element} */ (event.target).closest('a[href^="#d"]');
    const seq = link && /^#d(\d+)$/.exec(link.getAttribute('href') || '');
    if (seq) { event.preventDefault(); open(seq[1]); }
  });

  const given = new URLSearchParams(location.search);
  if (given.size) outcome.value = 'all'; // a link with conditions means every decision that fulfils them
  for (const control of form.elements) {
    const named = /** @type {HTMLInputElement} */ (control);
    if (given.has(named.name)) named.value = given.get(named.name) || '';
  }
  form.addEventListener('input', debounce(restart, 180));
  form.addEventListener('submit', (event) => event.preventDefault());
  const openNamed = () => {
    const named = /^#d(\d+)$/.exec(location.hash);
    if (named) open(named[1]);
  };
  addEventListener('hashchange', openNamed);
  restart().then(openNamed);
})();
