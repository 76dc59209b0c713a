// The chat drawer of every page: asks /api/chat and shows its events. All text is set as text; only citations of our own paths become links.
// @ts-check
(() => {
  'use strict';
  const { complain, toast, send } = /** @type {any} */ (window).pitboss;
  const drawer = /** @type {HTMLDialogElement | null} */ (document.getElementById('chat'));
  const log = document.getElementById('chat-log');
  const form = /** @type {HTMLFormElement | null} */ (document.getElementById('chat-form'));
  const input = /** @type {HTMLTextAreaElement | null} */ (document.getElementById('chat-text'));
  const note = document.getElementById('chat-note');
  if (!drawer || !log || !form || !input || !note) {
    // A page without a session, such as after signing out: the next user of this tab must not see these conversations.
    for (const name of Object.keys(sessionStorage)) if (name.startsWith('pitboss-chat:')) sessionStorage.removeItem(name);
    return;
  }
  const stop = /** @type {HTMLButtonElement} */ (drawer.querySelector('[data-do=stop-chat]'));
  const ask = /** @type {HTMLButtonElement} */ (form.querySelector('[type=submit]'));

  const [, kind, about] = /^\/(run|deployment)s\/([0-9a-zA-Z_-]+)/.exec(location.pathname) || ['', '', ''];
  const key = `pitboss-chat:${about}`;
  const MOST = 24;
  /** @typedef {{text: string, href: string}} Citation */
  /** @typedef {{question: string, answer: string, citations: Citation[], unsupported: string[], after: string}} Turn */
  /** @type {{conversation: string, turns: Turn[]}} */
  let kept = { conversation: '', turns: [] };
  /** @type {AbortController | null} */
  let running = null;
  /** @type {Element | null} */
  let before = null;

  /** @param {string} name @param {string} style @param {string} [text] */
  const element = (name, style, text = '') => {
    const made = document.createElement(name);
    if (style) made.className = style;
    made.textContent = text;
    return made;
  };

  const save = () => {
    kept.turns = kept.turns.slice(-MOST);
    try {
      sessionStorage.setItem(key, JSON.stringify(kept));
    } catch {
      // the conversation is then forgotten with the page
    }
  };

  /** A path of this server, and nothing else. @param {unknown} href */
  const isOwn = (href) => typeof href === 'string' && /^\/runs\/[0-9a-zA-Z_-]+(\?code=\w+)?(#[\w-]*)?$/.test(href);

  /**
   * Text in which citations are links and numbers without a fact are marked.
   * @param {Element} place @param {string} text @param {Citation[]} citations @param {string[]} unsupported
   */
  const fill = (place, text, citations, unsupported) => {
    const links = new Map(citations.filter((one) => isOwn(one.href)).map((one) => [one.text, one.href]));
    const parts = [...links.keys(), ...unsupported].filter(Boolean).sort((one, other) => other.length - one.length);
    place.textContent = '';
    if (!parts.length) {
      place.textContent = text;
      return;
    }
    const escaped = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    for (const piece of text.split(new RegExp(`(${escaped.join('|')})`))) {
      const href = links.get(piece);
      if (href) {
        const link = document.createElement('a');
        link.href = href;
        link.textContent = about ? piece.replace(`run ${about} `, '') : piece; // which run it is goes without saying there
        place.append(link);
      } else if (unsupported.includes(piece)) {
        const mark = element('mark', '', piece);
        mark.title = 'No recorded fact of this conversation holds this number';
        place.append(mark);
      } else if (piece) {
        place.append(piece);
      }
    }
  };

  const toEnd = () => {
    log.scrollTop = log.scrollHeight;
  };

  /** @param {string} question */
  const begin = (question) => {
    const steps = element('div', 'tool-steps');
    const answer = element('div', 'answer waiting');
    log.append(element('div', 'question', question), steps, answer);
    toEnd();
    return { steps, answer };
  };

  /** @param {{question: string, answer: string, citations: Citation[], unsupported: string[], after: string}} turn */
  const show = (turn) => {
    const { steps, answer } = begin(turn.question);
    steps.remove();
    answer.classList.remove('waiting');
    fill(answer, turn.answer, turn.citations, turn.unsupported);
    if (turn.after) log.append(element('div', 'remark', turn.after));
  };

  /** What a confirmed request has led to. @param {any} reply @param {any} card */
  const outcome = (reply, card) => {
    if (reply && reply.run_id && /^[0-9a-zA-Z_-]+$/.test(reply.run_id)) return { text: `Run ${reply.run_id} is queued`, href: `/runs/${reply.run_id}` };
    if (card.kind === 'skill_edit') {
      const name = decodeURIComponent(card.request.path.split('/').pop());
      return { text: `Saved ${name}${reply && reply.version ? `, version ${reply.version}` : ''}`, href: `/skills/${encodeURIComponent(name)}` };
    }
    return { text: 'Done', href: '' };
  };

  /** A prepared action with its two buttons. Nothing is sent before Confirm. @param {any} card */
  const showCard = (card) => {
    const place = element('section', 'card');
    const list = document.createElement('ul');
    for (const line of card.details || []) list.append(element('li', '', String(line)));
    const result = element('div', 'result');
    const actions = element('div', 'actions');
    const dismiss = element('button', 'quiet', 'Dismiss');
    const confirm = /** @type {HTMLButtonElement} */ (element('button', 'primary', 'Confirm'));
    dismiss.setAttribute('type', 'button');
    confirm.type = 'button';
    actions.append(dismiss, confirm);
    place.append(element('h3', '', String(card.title)), list, result, actions);
    dismiss.addEventListener('click', () => {
      actions.remove();
      result.textContent = 'Dismissed';
    });
    const body = { ...(card.request.body || {}) };
    confirm.addEventListener('click', async () => {
      const { method, path } = card.request;
      if (!/^\/api\/(skills|runs)(\/|$)/.test(path) || !['POST', 'PUT'].includes(method)) return;
      confirm.disabled = true;
      try {
        const reply = await send(method, path, body);
        actions.remove();
        const { text, href } = outcome(reply, card);
        if (href) {
          const link = document.createElement('a');
          link.href = href;
          link.textContent = text;
          result.replaceChildren(link);
        } else result.textContent = text;
      } catch (error) {
        const problem = /** @type {any} */ (error).problem || {};
        confirm.disabled = false;
        const high = problem.estimate && problem.estimate.hi;
        if (/** @type {any} */ (error).status === 409 && typeof high === 'number') {
          body.confirm_usd = Math.ceil(high * 1e6) / 1e6;
          result.textContent = `This may cost up to $${high.toFixed(2)}.`;
          confirm.textContent = `Confirm up to $${high.toFixed(2)}`;
        } else {
          result.textContent = problem.hint ? `${problem.detail} (${problem.hint})` : String(/** @type {any} */ (error).message);
        }
      }
    });
    log.append(place);
    toEnd();
  };

  /** The events of a stream. @param {ReadableStream<Uint8Array>} body */
  async function* events(body) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const lines = text.slice(0, end).split('\n');
        text = text.slice(end + 2);
        const name = lines.find((line) => line.startsWith('event: '));
        const data = lines.find((line) => line.startsWith('data: '));
        if (name && data) yield { name: name.slice(7), data: JSON.parse(data.slice(6)) };
      }
    }
  }

  /** @param {string} text @param {AbortSignal} signal */
  const request = async (text, signal) => {
    const csrf = /** @type {HTMLMetaElement | null} */ (document.querySelector('meta[name=pitboss-csrf]'));
    const headers = { 'Content-Type': 'application/json', Accept: 'text/event-stream', ...(csrf ? { 'X-CSRF-Token': csrf.content } : {}) };
    const reply = await fetch('/api/chat', { method: 'POST', headers, signal, body: JSON.stringify({ about, text, conversation: kept.conversation }) });
    if (reply.ok && reply.body) return reply.body;
    const problem = await reply.json().catch(() => ({}));
    throw Object.assign(new Error(problem.detail || reply.statusText), { problem });
  };

  /** @param {string} question */
  const talk = async (question) => {
    const { steps, answer } = begin(question);
    /** @type {Turn} */
    const turn = { question, answer: '', citations: [], unsupported: [], after: '' };
    running = new AbortController();
    ask.disabled = true;
    stop.hidden = false;
    try {
      for await (const { name, data } of events(await request(question, running.signal))) {
        if (name === 'tool') {
          const given = JSON.stringify(data.arguments);
          steps.append(element('div', '', given === '{}' ? data.name : `${data.name} ${given}`));
        } else if (name === 'text') {
          turn.answer += data.delta;
          answer.textContent = turn.answer;
        } else if (name === 'withdraw') {
          turn.answer = '';
          answer.textContent = '';
        } else if (name === 'card') showCard(data);
        else if (name === 'error') throw Object.assign(new Error(data.detail), { problem: data });
        else if (name === 'done') {
          kept.conversation = data.conversation;
          turn.citations = data.citations;
          turn.unsupported = data.unsupported;
          fill(answer, turn.answer, turn.citations, turn.unsupported);
          const doubt = turn.unsupported.length ? 'Marked numbers are in no recorded fact. ' : '';
          const cost = data.cost_usd === null ? 'Cost unknown' : data.cost_usd > 0 ? `Cost $${data.cost_usd.toFixed(4)}` : '';
          turn.after = `${doubt}${cost}`.trim();
          if (turn.after) log.append(element('div', 'remark', turn.after));
          kept.turns.push(turn);
          save();
        }
        toEnd();
      }
    } catch (error) {
      const problem = /** @type {any} */ (error).problem || {};
      const stopped = running.signal.aborted;
      const text = stopped ? 'Stopped.' : problem.hint ? `${problem.detail} (${problem.hint})` : String(/** @type {any} */ (error).message);
      log.append(element('div', stopped ? 'remark' : 'notice', text));
      if (!turn.answer) answer.remove();
    } finally {
      answer.classList.remove('waiting');
      running = null;
      ask.disabled = false;
      stop.hidden = true;
      toEnd();
    }
  };

  const open = () => {
    if (drawer.open) return;
    before = document.activeElement;
    drawer.show();
    document.body.classList.add('chat-open');
    input.focus();
    toEnd();
  };

  const close = () => {
    drawer.close();
    document.body.classList.remove('chat-open');
    if (before instanceof HTMLElement) before.focus();
  };

  const describe = /** @type {HTMLElement} */ (document.getElementById('chat-about'));
  describe.textContent = about ? `about ${kind} ${about}` : 'about this workspace';
  note.textContent = 'Reads only. Enter asks, Esc closes.';
  try {
    const stored = JSON.parse(sessionStorage.getItem(key) || 'null');
    if (stored && Array.isArray(stored.turns)) {
      kept = stored;
      for (const turn of kept.turns) show(turn);
    }
  } catch {
    toast('The conversation could not be read again.');
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const question = input.value.trim();
    if (!question || running) return;
    input.value = '';
    talk(question).catch(complain);
  });
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  document.addEventListener('click', (event) => {
    const button = /** @type {Element} */ (event.target).closest('[data-do]');
    const action = button && button.getAttribute('data-do');
    if (action === 'open-chat') drawer.open ? close() : open();
    else if (action === 'close-chat') close();
    else if (action === 'stop-chat') running?.abort();
    else if (action === 'new-chat' && !running) {
      kept = { conversation: '', turns: [] };
      log.textContent = '';
      save();
      input.focus();
    }
  });
  document.addEventListener('keydown', (event) => {
    const target = /** @type {Element} */ (event.target);
    const writing = target.closest('input, textarea, select, [contenteditable]');
    if (event.key === 'k' && (event.ctrlKey || event.metaKey) && !event.shiftKey) {
      event.preventDefault();
      open();
    } else if (event.key === '/' && !writing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      open();
    } else if (event.key === 'Escape' && drawer.open && (drawer.contains(target) || !document.querySelector('dialog[open]:not(.chat)'))) {
      close();
    }
  });
})();
