// The drawer on the page of a skill that deploys it.
// @ts-check
(() => {
  'use strict';
  const { send, complain } = window.pitboss;
  const form = /** @type {HTMLFormElement | null} */ (document.getElementById('deploy-form'));
  if (!form) return;
  const drawer = /** @type {HTMLDialogElement} */ (document.getElementById('deploy'));
  const submit = /** @type {HTMLButtonElement} */ (document.getElementById('deploy-send'));
  const problem = /** @type {HTMLElement} */ (document.getElementById('deploy-problem'));
  /** @param {string} name */
  const control = (name) => /** @type {HTMLInputElement | HTMLSelectElement | null} */ (form.elements.namedItem(`deploy-${name}`));
  /** @param {string} name */
  const text = (name) => (control(name)?.value || '').trim();

  /** Shows what the chosen mode needs, and nothing else. */
  const fit = () => {
    const mode = text('mode');
    for (const part of /** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll('[data-modes]'))) {
      part.hidden = !(part.dataset.modes || '').split(' ').includes(mode);
    }
    for (const name of ['confirm', 'password']) {
      const field = control(name);
      if (field) field.toggleAttribute('required', mode === 'live');
    }
    submit.className = mode === 'live' ? 'danger' : 'primary';
    submit.textContent = mode === 'live' ? 'Deploy with real money' : 'Deploy';
    problem.hidden = true;
  };

  const body = () => {
    const mode = text('mode');
    const caps = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll('[data-cap]'));
    return {
      skill: form.dataset.skill,
      mode,
      model: text('model'),
      caps: [...caps].filter((cap) => cap.value.trim()).map((cap) => `${cap.dataset.cap}=${cap.value.trim()}`),
      ...(mode === 'paper' ? (text('equity') ? { equity_usd: text('equity') } : {}) : { account: text('account') }),
      ...(text('daily') ? { max_cost_usd_per_day: text('daily') } : {}),
      ...(text('total') ? { max_cost_usd: text('total') } : {}),
      ...(mode === 'live' ? { confirm: text('confirm'), password: control('password')?.value || '' } : {}),
    };
  };

  document.querySelector('[data-do=deploy]')?.addEventListener('click', () => {
    fit();
    drawer.showModal();
  });
  control('mode')?.addEventListener('change', fit);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = true;
    try {
      const made = await send('POST', '/api/deployments', body());
      location.assign(`/deployments/${encodeURIComponent(made.deployment_id)}`);
    } catch (error) {
      complain(error, problem);
      submit.disabled = false;
    }
  });
})();
