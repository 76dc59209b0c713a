// What every page of the app needs: requests to the API of this server.
(() => {
  'use strict';
  const csrf = document.querySelector('meta[name=pitboss-csrf]');
  // Sends JSON and returns the parsed reply; throws an Error with the fields of problem+json otherwise.
  const send = async (method, path, body) => {
    const headers = { Accept: 'application/json' };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (csrf) headers['X-CSRF-Token'] = csrf.content;
    const reply = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const value = (reply.headers.get('Content-Type') || '').includes('json') ? await reply.json() : null;
    if (!reply.ok) throw Object.assign(new Error((value && value.detail) || reply.statusText), { status: reply.status, problem: value || {} });
    return value;
  };
  window.pitboss = { send };
})();
