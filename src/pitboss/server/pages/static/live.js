// Pages that follow what happens: their content is fetched again every few seconds, and buttons of it carry out actions.
// @ts-check
(() => {
  'use strict';
  const { send, toast, complain } = window.pitboss;
  const PAUSE_MS = 3000;
  const address = /** @type {HTMLElement | null} */ (document.querySelector('[data-live]'))?.dataset.live || '';
  const place = address ? document.getElementById('main') : null;
  let isBusy = false;
  let shown = '';

  const showTab = () => document.querySelector('.tabs [aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' });

  /** Fetches the content of this page again; keeps what is open, and the place in lists that scroll. */
  const refresh = async () => {
    if (!place || isBusy || document.hidden || document.getSelection()?.toString()) return;
    isBusy = true;
    try {
      const reply = await fetch(address, { headers: { Accept: 'text/html' } });
      if (!reply.ok) return;
      const html = await reply.text();
      if (html === shown) return;
      shown = html;
      const focused = document.activeElement?.id;
      const open = [...place.querySelectorAll('details[open][id]')].map((one) => one.id);
      const scrolled = [...place.querySelectorAll('.scroll')].map((one) => one.scrollTop);
      place.innerHTML = html; // made by our server, where all text of others is escaped
      for (const id of open) document.getElementById(id)?.setAttribute('open', '');
      place.querySelectorAll('.scroll').forEach((one, index) => { one.scrollTop = scrolled[index] || 0; });
      if (focused) document.getElementById(focused)?.focus();
      showTab();
    } finally {
      isBusy = false;
    }
  };

  showTab();
  if (place) setInterval(() => refresh().catch(() => {}), PAUSE_MS);

  document.addEventListener('click', async (event) => {
    const button = /** @type {HTMLButtonElement | null} */ (/** @type {Element} */ (event.target).closest('[data-action]'));
    if (!button) return;
    const question = button.dataset.confirm;
    if (question && !window.confirm(question)) return;
    button.disabled = true;
    try {
      const done = await send('POST', `/api/venues/${button.dataset.venue}/actions/${button.dataset.action}`, { target: button.dataset.target });
      toast(done.message, 'ok');
      await refresh();
      if (!place) location.reload();
    } catch (error) {
      complain(error);
      button.disabled = false;
    }
  });
})();
