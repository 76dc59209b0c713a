// Optional interaction: filters, theme. The page is complete without it.
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

  const count = (value) => value.toLocaleString('en-US');

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
        const fits = outcome === 'all' || (outcome === 'proposed' ? row.dataset.outcome !== 'noop' : row.dataset.outcome === outcome);
        row.hidden = !(fits && (symbol === '' || row.dataset.symbol === symbol) && (text === '' || textOf(row).includes(text)));
        if (!row.hidden) shown += 1;
      }
      form.querySelector('.shown').textContent = `${count(shown)} of ${count(rows.length)} rows`;
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
      if (row.hidden) { form.reset(); form.elements.outcome.value = 'all'; apply(); }
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
