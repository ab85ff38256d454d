import type { Socket } from 'node:net';

/**
 * One reply of the sink. A text is sent as it is, an array as the lines of one reply (`['250-a', '250 b']`); only CRLF is
 * added, so that malformed replies can be sent, too. Three texts are special: `drop` closes the connection, `reset`
 * closes it with RST, `silent` sends nothing and ignores all further input. `close`: sends the reply, then closes, as
 * servers do with a 421. `bytes`: sent without CRLF; with `everyMs` one byte at a time, repeatedly and without end.
 * `accepted`: the reply 250 counts as given but is not sent, and the connection ends in this way.
 */
export type Answer =
  | string
  | string[]
  | { reply: string; delayMs: number }
  | { reply: string; bytesPerSecond: number }
  | { reply: string; close: true }
  | { bytes: string; everyMs?: number }
  | { accepted: Ending };

type Ending = 'drop' | 'reset' | 'silent';

/** Writes replies: immediately, delayed, byte by byte, or not at all. */
export interface ReplyWriter {
  /** Writes an answer. `then` gets its code when it is sent; it is not called after `drop`, `reset` and `silent`. */
  write(answer: Answer, then?: (code: number) => void): void;
  /** Sends the answers since the last flush in one write. */
  flush(): void;
  /** A delayed reply is not sent yet: commands have to wait. */
  busy(): boolean;
  /** No reply is sent and all input is ignored from now on. */
  isSilent(): boolean;
  silence(): void;
  /** The peer waits for a reply that never comes, or that never ends. */
  isStalled(): boolean;
  /** Uses another socket from now on. */
  moveTo(socket: Socket): void;
}

const CRLF = '\r\n';

/** `ready` is called when a delayed reply was sent and commands can continue. */
export function createReplyWriter(first: Socket, ready: () => void): ReplyWriter {
  const state = { socket: first, output: '', busy: false, silent: false, stalled: false };

  const flush = () => {
    if (state.output !== '' && state.socket.writable) state.socket.write(state.output, 'latin1');
    state.output = '';
  };
  const later = (ms: number, task: () => void) => {
    flush();
    state.busy = true;
    setTimeout(() => {
      state.busy = false;
      if (state.socket.destroyed) return;
      task();
      if (!state.busy) ready();
    }, ms);
  };
  const trickle = (text: string, everyMs: number, then: () => void) =>
    later(everyMs, () => {
      state.socket.write(text.slice(0, 1), 'latin1');
      if (text.length > 1) trickle(text.slice(1), everyMs, then);
      else then();
    });
  const dribble = (bytes: string, everyMs: number, at = 0): void => {
    state.stalled = true;
    later(everyMs, () => {
      state.socket.write(bytes.charAt(at), 'latin1');
      dribble(bytes, everyMs, (at + 1) % bytes.length);
    });
  };
  const end = (how: Ending) => {
    flush();
    state.silent = true;
    state.stalled = how === 'silent';
    if (how === 'drop') state.socket.destroy();
    if (how === 'reset') state.socket.resetAndDestroy();
  };
  const send = (text: string, then: (code: number) => void) => {
    state.output += text + CRLF;
    then(codeOf(text));
  };

  return {
    flush,
    busy: () => state.busy,
    isSilent: () => state.silent,
    silence: () => {
      state.silent = true;
      state.stalled = true;
    },
    isStalled: () => state.stalled,
    moveTo: (socket) => {
      state.socket = socket;
    },
    write: (answer, then = () => undefined) => {
      if (answer === 'drop' || answer === 'reset' || answer === 'silent') end(answer);
      else if (typeof answer === 'string') send(answer, then);
      else if (Array.isArray(answer)) send(answer.join(CRLF), () => then(codeOf(answer.at(-1) ?? '')));
      else if ('accepted' in answer) {
        then(250);
        end(answer.accepted);
      } else if ('bytes' in answer) {
        if (answer.everyMs !== undefined) dribble(answer.bytes, answer.everyMs);
        else {
          state.output += answer.bytes;
          then(codeOf(answer.bytes));
        }
      } else if ('delayMs' in answer) later(answer.delayMs, () => send(answer.reply, then));
      else if ('bytesPerSecond' in answer) {
        trickle(answer.reply + CRLF, 1000 / answer.bytesPerSecond, () => then(codeOf(answer.reply)));
      } else {
        send(answer.reply, then);
        flush();
        state.silent = true;
        state.socket.end();
      }
    },
  };
}

function codeOf(reply: string): number {
  return Number(reply.slice(0, 3));
}
