// The list of runs: the button that compares is active while two or more are ticked.
// @ts-check
(() => {
  'use strict';
  const form = /** @type {HTMLFormElement | null} */ (document.querySelector('.compare-form'));
  if (!form) return;
  const button = /** @type {HTMLButtonElement} */ (form.querySelector('[data-do=compare]'));
  const boxes = /** @type {HTMLInputElement[]} */ (Array.from(form.querySelectorAll('input[name=run]')));
  const most = Number(form.dataset.most);
  const update = () => {
    const ticked = boxes.filter((box) => box.checked).length;
    button.disabled = ticked < 2;
    button.textContent = ticked < 2 ? 'Compare' : `Compare ${ticked} runs`;
    for (const box of boxes) box.disabled = !box.checked && ticked >= most;
  };
  form.addEventListener('change', update);
  update();
})();
