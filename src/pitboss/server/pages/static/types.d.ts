/** What app.js gives to the other scripts of a page. */
interface Pitboss {
  /** Sends JSON and returns the parsed reply; throws an Error with `status` and `problem` otherwise. */
  send(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<any>;
  toast(text: string, tone?: '' | 'ok' | 'bad'): void;
  /** Shows an error of `send`: in `place` if it is given, because a drawer hides toasts, else as a toast. */
  complain(error: any, place?: HTMLElement): void;
  debounce(call: (...values: any[]) => void, pause: number): (...values: any[]) => void;
}
interface Window { pitboss: Pitboss }
