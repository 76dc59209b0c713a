// What every page of the app needs: requests to the API of this server, messages, dialogs.
// @ts-check
(() => {
  'use strict';
  const csrf = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name=pitboss-csrf]'));
  const SESSION_ENDED = { detail: 'your session has ended', hint: 'sign in again' };

  /**
   * Sends JSON and returns the parsed reply. Throws an Error with `status` and `problem` (problem+json) otherwise.
   * @param {string} method @param {string} path @param {unknown} [body] @param {AbortSignal} [signal]
   */
  const send = async (method, path, body, signal) => {
    /** @type {Record<string, string>} */
    const headers = { Accept: 'application/json' };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (csrf) headers['X-CSRF-Token'] = csrf.content;
    const reply = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) }).catch((error) => {
      throw signal?.aborted ? error : new Error('the server does not answer');
    });
    const isJson = reply.status !== 204 && (reply.headers.get('Content-Type') || '').includes('json');
    const value = isJson ? await reply.json() : await reply.text();
    if (!reply.ok) {
      const problem = reply.status === 401 ? SESSION_ENDED : isJson ? value : {};
      throw Object.assign(new Error(problem.detail || reply.statusText), { status: reply.status, problem });
    }
    return value;
  };

  /** Shows a message for a few seconds. @param {string} text @param {'' | 'ok' | 'bad'} [tone] */
  const toast = (text, tone = '') => {
    let place = document.querySelector('.toasts');
    if (!place) {
      place = document.createElement('div');
      place.className = 'toasts';
      place.setAttribute('aria-live', 'polite');
      document.body.append(place);
    }
    const message = document.createElement('div');
    message.className = `notice ${tone}`;
    message.textContent = text;
    place.append(message);
    setTimeout(() => message.remove(), 6000);
  };

  /** Shows an error of `send`: in `place`, or else as a toast. @param {any} error @param {HTMLElement} [place] */
  const complain = (error, place) => {
    const message = String(error?.message || error);
    const text = error?.problem?.hint ? `${message} (${error.problem.hint})` : message;
    if (!place) return toast(text, 'bad');
    place.textContent = text;
    place.hidden = false;
    place.scrollIntoView({ block: 'nearest' });
  };

  /** Calls back at most once in a while, with the newest arguments. @param {(...values: any[]) => void} call @param {number} pause */
  const debounce = (call, pause) => {
    let timer = 0;
    return (/** @type {any[]} */ ...values) => {
      clearTimeout(timer);
      timer = setTimeout(() => call(...values), pause);
    };
  };

  document.addEventListener('click', (event) => {
    const target = /** @type {Element} */ (event.target);
    const close = target.closest('[data-do=close-dialog]');
    if (close) close.closest('dialog')?.close();
    else if (target instanceof HTMLDialogElement) target.close(); // the backdrop
  });

  // Lists of links and charts that are wider than a phone: what matters is in sight.
  const reveal = () => {
    for (const list of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('.top nav, .tabs'))) {
      const current = /** @type {HTMLElement | null} */ (list.querySelector('[aria-current=page], [aria-selected=true]'));
      if (!current) continue;
      const [inner, outer] = [current.getBoundingClientRect(), list.getBoundingClientRect()];
      if (inner.left < outer.left || inner.right > outer.right) list.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
    }
    for (const box of document.querySelectorAll('[data-shown=end] .scroll')) box.scrollLeft = box.scrollWidth;
  };
  reveal();
  addEventListener('resize', reveal);

  Object.assign(window, { pitboss: { send, toast, complain, debounce } });
})();
