// Fetches finer data for the charts of a run when a part of their time is shown. The page itself has what a saved report has.
// @ts-check
(() => {
  'use strict';
  const bar = /** @type {HTMLElement | null} */ (document.querySelector('.run-bar'));
  const figures = /** @type {HTMLElement[]} */ (Array.from(document.querySelectorAll('figure[data-part]')));
  if (!bar || !figures.length) return;
  const { complain, debounce } = /** @type {any} */ (window).pitboss;
  const AROUND = 0.3; // share of the time that is fetched before and after, so that a small move needs no request
  let newest = 0;

  /** @param {HTMLElement} figure @param {number} start @param {number} end */
  const fetchData = async (figure, start, end) => {
    const mine = newest;
    const part = String(figure.dataset.part).split('/').map(encodeURIComponent).join('/');
    const room = (end - start) * AROUND;
    const query = `from=${Math.max(0, Math.round(start - room))}&to=${Math.round(end + room)}`;
    const reply = await fetch(`/runs/${bar.dataset.run}/charts/${part}?${query}`, { headers: { Accept: 'text/html' } });
    if (!reply.ok) throw new Error(`the chart could not be drawn (${reply.status})`);
    const place = document.createElement('template');
    place.innerHTML = await reply.text(); // markup of this server
    const data = /** @type {HTMLElement | null} */ (place.content.querySelector('figure'))?.dataset.chart;
    if (data && mine === newest) figure.dispatchEvent(new CustomEvent('chart-data', { detail: data }));
  };
  const follow = debounce(async (/** @type {{start: number, end: number, isWhole: boolean}} */ range) => {
    newest += 1;
    if (range.isWhole) return;
    try {
      await Promise.all(figures.filter((figure) => !figure.closest('details:not([open])')).map((figure) => fetchData(figure, range.start, range.end)));
    } catch (error) {
      complain(error);
    }
  }, 250);
  document.addEventListener('chart-range', (event) => follow(/** @type {CustomEvent} */ (event).detail));
})();
