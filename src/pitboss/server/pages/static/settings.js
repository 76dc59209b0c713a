// The settings page: sends forms and buttons with `data-send` to the API, and shows a new token and the tools of a server.
// @ts-check
(() => {
  'use strict';
  const { send, toast, complain } = window.pitboss;
  const DONE = 'pitboss-done';

  /** @param {string} id */
  const dialog = (id) => /** @type {HTMLDialogElement} */ (document.getElementById(id));

  /** Asks before something is done. @param {string} question @param {() => void} act */
  const confirm = (question, act) => {
    const text = document.getElementById('confirm-text');
    const yes = document.getElementById('confirm-yes');
    if (!text || !yes) return;
    text.textContent = question;
    yes.onclick = () => {
      dialog('confirm').close();
      act();
    };
    dialog('confirm').showModal();
  };

  /** The fields of a form as a JSON object; empty optional ones are left out. @param {HTMLFormElement} form */
  const values = (form) => {
    /** @type {Record<string, unknown>} */
    const body = {};
    for (const control of form.querySelectorAll('input, select')) {
      const field = /** @type {HTMLInputElement | HTMLSelectElement} */ (control);
      const name = field.dataset.name || field.name;
      if (name && field.dataset.many) {
        if (/** @type {HTMLInputElement} */ (field).checked) body[name] = [.../** @type {string[]} */ (body[name] || []), field.value];
        continue;
      }
      if (!name || (field.value === '' && (field.dataset.optional || name === 'days'))) continue;
      body[name] = name === 'days' ? Number(field.value) : field.value;
    }
    return body;
  };

  /** Fills `{field}` of a path and removes those fields. @param {string} path @param {Record<string, unknown>} body */
  const fill = (path, body) =>
    path.replace(/\{(\w+)\}/g, (_, name) => {
      const value = encodeURIComponent(String(body[name]));
      delete body[name];
      return value;
    });

  /** @param {HTMLElement} element @param {Record<string, unknown> | undefined} body */
  const act = async (element, body) => {
    const [method, path] = (element.dataset.send || '').split(' ');
    const button = element instanceof HTMLButtonElement ? element : element.querySelector('button');
    if (button) button.disabled = true;
    try {
      const reply = await send(method, body ? fill(path, body) : path, body);
      if (element.dataset.after === 'token') showToken(reply.token);
      else if (element.dataset.after === 'tools') showTools(reply);
      else {
        if (element.dataset.done) sessionStorage.setItem(DONE, element.dataset.done);
        location.reload();
      }
    } catch (error) {
      complain(error);
    } finally {
      if (button) button.disabled = false;
    }
  };

  /** @param {string} token */
  const showToken = (token) => {
    const field = /** @type {HTMLInputElement} */ (document.getElementById('token-value'));
    field.value = token;
    dialog('token').showModal();
    field.select();
    dialog('token').addEventListener('close', () => location.reload(), { once: true });
  };

  /** @param {string} tag @param {string} text @param {string} [style] */
  const made = (tag, text, style = '') => {
    const element = document.createElement(tag);
    element.textContent = text;
    element.className = style;
    return element;
  };

  /** The tools of a server as it describes them now, each with the button that approves it. @param {any} reply */
  const showTools = (reply) => {
    const list = document.getElementById('tools-list');
    if (!list) return;
    list.replaceChildren();
    for (const tool of reply.tools) {
      const card = made('article', '', 'tool-definition');
      const head = made('h3', tool.name);
      head.append(' ', made('span', tool.state, `badge ${tool.state === 'approved' ? 'ok' : 'warn'}`));
      card.append(head);
      if (tool.approved_definition) card.append(made('p', 'Approved before:', 'note'), made('pre', tool.approved_definition));
      if (tool.approved_definition) card.append(made('p', 'Now:', 'note'));
      if (tool.definition) card.append(made('pre', tool.definition));
      if (tool.definition && (tool.state === 'changed' || tool.state === 'not approved')) {
        const button = /** @type {HTMLButtonElement} */ (made('button', `Approve ${tool.name} as it is here`, 'primary'));
        button.type = 'button';
        button.dataset.send = `PUT /api/mcp/approvals/${encodeURIComponent(reply.server)}/${encodeURIComponent(tool.name)}`;
        button.dataset.body = JSON.stringify({ digest: tool.digest });
        button.dataset.done = `${tool.name} is approved.`;
        card.append(button);
      }
      list.append(card);
    }
    if (!reply.tools.length) list.append(made('p', 'The server has no tools.', 'note'));
    dialog('tools').showModal();
  };

  document.addEventListener('submit', (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (!form.dataset.send) return;
    event.preventDefault();
    act(form, values(form));
  });

  document.addEventListener('click', (event) => {
    const target = /** @type {Element} */ (event.target);
    const button = /** @type {HTMLElement | null} */ (target.closest('button[data-send]'));
    if (!button) return;
    const body = button.dataset.body ? JSON.parse(button.dataset.body) : undefined;
    if (button.dataset.question) confirm(button.dataset.question, () => act(button, body));
    else act(button, body);
  });

  document.getElementById('token-copy')?.addEventListener('click', async () => {
    const field = /** @type {HTMLInputElement} */ (document.getElementById('token-value'));
    field.select();
    await navigator.clipboard.writeText(field.value).then(
      () => toast('Copied.', 'ok'),
      () => toast('Select the token and copy it with the keyboard.'),
    );
  });

  const done = sessionStorage.getItem(DONE);
  sessionStorage.removeItem(DONE);
  if (done) toast(done, 'ok');
})();
