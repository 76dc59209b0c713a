// The home page: what runs now stays current, and the two buttons of the first steps.
// @ts-check
(() => {
  'use strict';
  const { send, complain } = window.pitboss;
  const place = document.getElementById('now');
  const PAUSE = 1500;
  let failures = 0;

  /** Renews the list while something runs, and slowly otherwise. */
  const renew = async () => {
    if (!place) return;
    if (!document.hidden) {
      try {
        const reply = await fetch('/now');
        if (reply.status === 401) return location.reload(); // leads to the page to sign in
        failures = reply.ok ? 0 : failures + 1;
        if (reply.ok) place.innerHTML = await reply.text(); // markup of our own server
      } catch {
        failures += 1;
      }
    }
    const active = Number(/** @type {HTMLElement | null} */ (place.querySelector('[data-active]'))?.dataset.active || 0);
    setTimeout(renew, (active ? PAUSE : 5 * PAUSE) * (1 + failures));
  };

  document.addEventListener('click', async (event) => {
    const button = /** @type {HTMLButtonElement | null} */ (/** @type {Element} */ (event.target).closest('button[data-do]'));
    const action = button?.dataset.do;
    if (!button || (action !== 'prepare' && action !== 'first-run')) return;
    button.disabled = true;
    button.setAttribute('aria-busy', 'true');
    try {
      if (action === 'prepare') {
        button.textContent = 'Writing the market…';
        await send('POST', '/api/first-steps');
        location.reload();
      } else {
        button.textContent = 'Starting…';
        const run = await send('POST', '/api/runs', JSON.parse(button.dataset.request || '{}'));
        location.assign(`/runs/${encodeURIComponent(run.run_id)}`);
      }
    } catch (error) {
      button.disabled = false;
      button.textContent = action === 'prepare' ? 'Set up the demo' : 'Start the backtest';
      complain(error);
    }
  });
  if (place) setTimeout(renew, PAUSE);
})();
