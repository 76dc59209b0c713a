// The caps on the page of a deployment: changing them, and cancelling a raise that is pending.
// @ts-check
(() => {
  'use strict';
  const { send, toast, complain } = window.pitboss;
  const page = /** @type {HTMLElement | null} */ (document.querySelector('.deployment'));
  const form = /** @type {HTMLFormElement | null} */ (document.getElementById('caps-form'));
  if (!page || !form) return;
  const drawer = /** @type {HTMLDialogElement} */ (document.getElementById('caps-dialog'));
  const submit = /** @type {HTMLButtonElement} */ (document.getElementById('caps-send'));
  const problem = /** @type {HTMLElement} */ (document.getElementById('caps-problem'));
  const path = `/api/deployments/${page.dataset.deployment}/caps`;
  /** @param {string} name */
  const control = (name) => /** @type {HTMLInputElement | null} */ (form.elements.namedItem(`caps-${name}`));
  /** @param {any} caps */
  const changed = (caps) => {
    toast(caps.pending ? 'The raise is pending.' : 'The caps are in effect.', 'ok');
    page.dispatchEvent(new Event('changed'));
  };

  page.addEventListener('click', async (event) => {
    const button = /** @type {HTMLButtonElement | null} */ (/** @type {Element} */ (event.target).closest('[data-do]'));
    if (button?.dataset.do === 'change-caps') {
      form.reset();
      problem.hidden = true;
      drawer.showModal();
    }
    if (button?.dataset.do !== 'cancel-raise') return;
    try {
      changed(await send('DELETE', `${path}/pending`));
    } catch (error) {
      complain(error);
    }
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const inputs = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll('[data-cap]'));
    submit.disabled = true;
    try {
      changed(await send('POST', path, {
        caps: [...inputs].filter((cap) => cap.value.trim()).map((cap) => `${cap.dataset.cap}=${cap.value.trim()}`),
        reason: control('reason')?.value.trim() || '',
        confirm: control('confirm')?.value.trim() || '',
        password: control('password')?.value || '',
      }));
      drawer.close();
    } catch (error) {
      complain(error, problem);
    } finally {
      submit.disabled = false;
    }
  });
})();
