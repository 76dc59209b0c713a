// A study that runs: its progress, until all runs have ended and the report can be shown.
// @ts-check
(() => {
  'use strict';
  const { send, toast, complain } = window.pitboss;
  const POLL_MS = 1500;
  const place = document.querySelector('[data-study]');
  if (!place) return;
  const id = place.getAttribute('data-study') || '';
  const bar = /** @type {HTMLProgressElement} */ (document.getElementById('study-progress'));
  const share = /** @type {HTMLElement} */ (document.getElementById('study-pct'));
  const counts = /** @type {HTMLElement} */ (document.getElementById('study-counts'));

  const look = async () => {
    try {
      const progress = await send('GET', `/api/studies/${id}/progress`);
      bar.value = progress.progress_pct;
      share.textContent = `${Math.round(progress.progress_pct)} %`;
      counts.textContent = Object.entries(progress.counts).sort().map(([status, count]) => `${count} ${status.replaceAll('_', ' ')}`).join(', ');
      if (progress.is_ended) return location.reload();
    } catch (error) {
      if ([401, 404].includes(/** @type {any} */ (error).status)) return location.reload(); // the page says what has happened
    }
    setTimeout(look, POLL_MS);
  };
  document.querySelector('[data-do=cancel-study]')?.addEventListener('click', async () => {
    try {
      const cancelled = await send('POST', `/api/studies/${id}/cancel`);
      toast(`${cancelled.cancelled} runs are cancelled or will stop.`, 'ok');
    } catch (error) {
      complain(error);
    }
  });
  setTimeout(look, POLL_MS);
})();
