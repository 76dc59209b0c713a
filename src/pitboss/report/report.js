// Optional interaction: hover read-outs, filters, theme. The page is complete without it.
// Data reaches the page as text nodes, never as markup.
(() => {
  'use strict';
  const root = document.documentElement;
  const all = (query, inside = document) => Array.from(inside.querySelectorAll(query));
  root.classList.add('js');

  // Theme: that of the system until the user selects one.
  const remember = (value) => { try { localStorage.setItem('pitboss-theme', value); } catch { /* private windows */ } };
  const recall = () => { try { return localStorage.getItem('pitboss-theme'); } catch { return null; } };
  const dark = () => (root.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const button = document.querySelector('[data-do=theme]');
  const name = () => { button.textContent = dark() ? 'Light' : 'Dark'; };
  if (['light', 'dark'].includes(recall())) root.dataset.theme = recall();
  button.addEventListener('click', () => { root.dataset.theme = dark() ? 'light' : 'dark'; remember(root.dataset.theme); name(); });
  name();

  // Read-outs of the charts.
  const digits = (size) => (size >= 10000 ? 1 : size >= 100 ? 2 : size >= 1 ? 4 : size >= 0.01 ? 6 : 8);
  const fixed = (value, places) => value.toLocaleString('en-US', { minimumFractionDigits: places, maximumFractionDigits: places });
  const show = (value, kind) => {
    const size = Math.abs(value);
    const sign = value < 0 ? '\u2212' : '';
    if (kind === 'usd') return `${sign}$${fixed(size, 2)}`;
    if (kind === 'pct') return `${sign}${fixed(size, 2)}%`;
    return sign + fixed(size, digits(size));
  };
  const clock = (at) => new Date(at).toISOString().slice(0, 16).replace('T', ' ');

  const attach = (svg) => {
    const data = JSON.parse(svg.dataset.hover);
    const line = svg.querySelector('.cursor');
    const readout = svg.closest('figure').querySelector('.readout');
    const count = data.rows[0].values.length;
    const instant = (index) => (data.at ? data.first + data.at[index] : data.start + ((data.end - data.start) * index) / Math.max(count - 1, 1));
    let current = count - 1;
    const nearest = (at) => {
      if (!data.at) return Math.round(((at - data.start) / (data.end - data.start)) * (count - 1));
      let low = 0;
      let high = count - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (data.first + data.at[middle] <= at) low = middle; else high = middle - 1;
      }
      return low;
    };
    const point = (index) => {
      current = Math.min(Math.max(index, 0), count - 1);
      const at = instant(current);
      const x = data.left + ((data.right - data.left) * (at - data.start)) / (data.end - data.start);
      line.setAttribute('x1', x);
      line.setAttribute('x2', x);
      line.style.visibility = 'visible';
      readout.replaceChildren(`${clock(at)} UTC`);
      for (const row of data.rows) {
        const value = document.createElement('b');
        value.textContent = show(row.values[current], row.kind);
        readout.append(` · ${row.name} `, value);
      }
    };
    const leave = () => { line.style.visibility = 'hidden'; readout.replaceChildren(); };
    svg.addEventListener('pointermove', (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * data.width;
      if (x < data.left || x > data.right) leave();
      else point(nearest(data.start + ((x - data.left) / (data.right - data.left)) * (data.end - data.start)));
    });
    svg.addEventListener('pointerleave', leave);
    svg.addEventListener('blur', leave);
    svg.addEventListener('keydown', (event) => {
      const jump = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -count, End: count }[event.key];
      if (!jump) return;
      event.preventDefault();
      point(line.style.visibility === 'visible' ? current + jump : current);
    });
  };
  for (const svg of all('svg[data-hover]')) attach(svg);
  // A script that puts a chart into the page announces it on the new figure.
  document.addEventListener('chart-added', (event) => { for (const svg of all('svg[data-hover]', event.target)) attach(svg); });

  // Filters of the decisions.
  const form = document.querySelector('.filters');
  if (form) {
    const rows = all('.decisions > tbody');
    const words = new Map();
    const textOf = (row) => {
      // Not the margins: they name every rule, so a search for a rule would find everything.
      if (!words.has(row)) words.set(row, [row.rows[0], ...all('.more .words, .call', row)].map((part) => part.textContent).join(' ').toLowerCase());
      return words.get(row);
    };
    const apply = () => {
      const outcome = form.elements.outcome.value;
      const symbol = form.elements.symbol.value;
      const text = form.elements.text.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        const fits = outcome === '' || (outcome === 'acting' ? row.dataset.outcome !== 'noop' : row.dataset.outcome === outcome);
        row.hidden = !(fits && (symbol === '' || row.dataset.symbol === symbol) && (text === '' || textOf(row).includes(text)));
        if (!row.hidden) shown += 1;
      }
      form.querySelector('.shown').textContent = `${fixed(shown, 0)} of ${fixed(rows.length, 0)} rows`;
    };
    form.addEventListener('input', apply);
    form.addEventListener('submit', (event) => event.preventDefault());
    const expand = form.querySelector('[data-do=unfold]');
    expand.addEventListener('click', () => {
      const open = expand.textContent === 'Expand all';
      for (const row of rows) if (!row.hidden) for (const more of all('details', row)) more.open = open;
      expand.textContent = open ? 'Collapse all' : 'Expand all';
    });
    apply();

    // A mark on a chart links to its decision: show it even if it is filtered out, and expand it.
    const follow = () => {
      const row = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
      if (!row || row.tagName !== 'TBODY') return;
      if (row.hidden) { form.reset(); apply(); }
      for (const more of all('details', row)) more.open = true;
      row.scrollIntoView({ block: 'center' });
    };
    addEventListener('hashchange', follow);
    follow();
  }

  // A link to a collapsed element expands it, also in browsers that do not do so themselves.
  const reveal = () => {
    const aim = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const folded = aim && aim.closest('.folded:not([open])');
    if (folded) { folded.open = true; aim.scrollIntoView(); }
  };
  addEventListener('hashchange', reveal);
  reveal();

  addEventListener('beforeprint', () => { for (const folded of all('.folded, .document')) folded.open = true; });
})();
