// The page of a run that is being executed: follows its events, and becomes the full page when it has ended.
// @ts-check
(() => {
  'use strict';
  const page = /** @type {HTMLElement | null} */ (document.querySelector('.live'));
  if (!page) return;
  const { send } = /** @type {any} */ (window).pitboss;
  const run = page.dataset.run;
  const PAUSE = 2000; // between two drawings of the curve and the list
  const POLL = 2000;
  const ENDED = ['complete', 'error', 'cancelled'];
  const place = (/** @type {string} */ name) => /** @type {HTMLElement | null} */ (page.querySelector(`[data-show=${name}]`));
  const put = (/** @type {string} */ name, /** @type {string} */ text) => { const element = place(name); if (element) element.textContent = text; };
  const number = (/** @type {number} */ value, digits = 0) => value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const usd = (/** @type {number | null} */ value) => (value === null || value === undefined ? '–' : `$${number(value, value && value < 1 ? 4 : 2)}`);

  let drawnAt = 0;
  let isDrawing = false;
  let isLeaving = false;
  const leave = () => { if (!isLeaving) { isLeaving = true; location.reload(); } };

  /** @param {any} state */
  const show = (state) => {
    const share = Number(state.progress_pct) || 0;
    put('progress', `${number(share, 1)} %`);
    const bar = /** @type {HTMLProgressElement | null} */ (place('bar'));
    if (bar) bar.value = share;
    if (state.ticks !== undefined) put('ticks', state.total_ticks ? `${number(state.ticks)} of ${number(state.total_ticks)}` : number(state.ticks));
    if (state.ticks_per_s !== undefined && state.ticks_per_s !== null) put('speed', number(state.ticks_per_s, state.ticks_per_s < 10 ? 1 : 0));
    put('cost', usd(state.cost_usd));
    put('saved', usd(state.saved_usd));
    const hits = state.speculation;
    if (hits && hits.used !== undefined) put('speculation', `${number(hits.used)} of ${number(hits.asked ?? hits.used)} used`);
    else put('speculation', state.wasted_usd ? `${usd(state.wasted_usd)} unused` : 'none');
    put('state', { queued: 'Waiting for a worker…', loading: 'Loading data…', computing_metrics: 'Computing metrics…' }[String(state.status)] || '');
    const badge = document.querySelector('[data-show=status] .badge');
    if (badge) {
      badge.textContent = String(state.status).replace('_', ' ');
      badge.className = state.status === 'queued' ? 'badge' : 'badge now';
    }
    if (ENDED.includes(state.status)) leave();
    else if (state.status !== 'queued') draw();
  };

  const draw = async () => {
    if (isDrawing || document.hidden || Date.now() - drawnAt < PAUSE) return;
    isDrawing = true;
    try {
      const chart = place('equity');
      const [reply, newest] = await Promise.all([
        chart ? fetch(`/runs/${run}/charts/equity`, { headers: { Accept: 'text/html' } }) : null,
        send('GET', `/api/runs/${run}/decisions?newest=true&limit=12`),
      ]);
      if (chart && reply && reply.ok) {
        const before = chart.querySelector('.scroll');
        const left = before && before.scrollLeft + before.clientWidth < before.scrollWidth - 4 ? before.scrollLeft : null;
        chart.innerHTML = await reply.text(); // markup of this server
        const after = chart.querySelector('.scroll'); // the newest part of a wide chart, unless somebody looks at an older one
        if (after) after.scrollLeft = left === null ? after.scrollWidth : left;
        chart.dispatchEvent(new CustomEvent('chart-added', { bubbles: true }));
      }
      if (newest.decisions.length) list(newest.decisions);
      drawnAt = Date.now();
    } catch { /* the next event tries again */ } finally {
      isDrawing = false;
    }
  };
  /** @param {any[]} rows */
  const list = (rows) => {
    place('newest')?.replaceChildren(...rows.map((row) => {
      const item = document.createElement('li');
      item.className = row.outcome;
      for (const [name, style, text] of [
        ['time', 'when', row.tick_at.slice(0, 16).replace('T', ' ')],
        ['b', '', row.words + (row.times > 1 ? ` × ${row.times}` : '')],
        ['span', 'verdict', row.outcome === 'noop' ? 'no-op' : row.outcome],
        ['code', '', row.code || ''],
        ['small', 'why', row.reason],
      ]) {
        if (!text) continue;
        const part = document.createElement(name);
        part.className = style;
        part.textContent = text;
        item.append(part, ' ');
      }
      return item;
    }));
  };

  // Events; where they are not available, questions.
  const poll = async () => {
    try {
      show(await send('GET', `/api/runs/${run}`));
    } catch (error) { // the server may be restarting
      if ([401, 404].includes(/** @type {any} */ (error).status)) leave(); // the page says what has happened
    }
    if (!isLeaving) setTimeout(poll, POLL);
  };
  const source = new EventSource(`/api/runs/${run}/events`);
  let heard = false;
  source.addEventListener('progress', (event) => { heard = true; show(JSON.parse(event.data)); });
  source.addEventListener('tick', () => { heard = true; draw(); });
  source.addEventListener('done', () => { source.close(); leave(); });
  source.addEventListener('error', () => {
    if (source.readyState === EventSource.CLOSED || !heard) { source.close(); poll(); }
  });
  if (page.dataset.status !== 'queued') draw();
})();
