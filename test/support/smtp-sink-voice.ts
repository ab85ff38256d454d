import type { Socket } from 'node:net';

/** How the sink says what it says: at once, late, byte by byte, or not at all. */

/**
 * A text is sent as it stands, an array as the lines of one reply (`['250-a', '250 b']`); nothing is added but
 * CRLF, so that nonsense can be said too. Three texts are special: `drop` closes, `reset` closes with RST,
 * `silent` says nothing and is deaf from then on. `close`: says it, then closes, as goes with a 421.
 */
export type Answer =
  | string
  | string[]
  | { reply: string; delayMs: number }
  | { reply: string; bytesPerSecond: number }
  | { reply: string; close: true };

export interface Voice {
  /** Performs an answer. `then` runs once a reply is out, with its code; never after `drop` and its like. */
  perform(answer: Answer, then?: (code: number) => void): void;
  /** Writes what the answers since the last flush said, in one go. */
  flush(): void;
  /** A reply is still under way: commands have to wait. */
  busy(): boolean;
  /** Nothing will be said or listened to any more. */
  deaf(): boolean;
  deafen(): void;
  /** Speaks through another socket from now on. */
  moveTo(socket: Socket): void;
}

const CRLF = '\r\n';

/** `ready` is called whenever a late reply is out and commands can go on. */
export function createVoice(first: Socket, ready: () => void): Voice {
  const state = { socket: first, output: '', busy: false, deaf: false };

  const flush = () => {
    if (state.output !== '' && state.socket.writable) state.socket.write(state.output, 'latin1');
    state.output = '';
  };
  const later = (ms: number, act: () => void) => {
    flush();
    state.busy = true;
    setTimeout(() => {
      state.busy = false;
      if (state.socket.destroyed) return;
      act();
      if (!state.busy) ready();
    }, ms);
  };
  const dribble = (text: string, everyMs: number, then: () => void) =>
    later(everyMs, () => {
      state.socket.write(text.slice(0, 1), 'latin1');
      if (text.length > 1) dribble(text.slice(1), everyMs, then);
      else then();
    });
  const fallSilent = (how: string) => {
    flush();
    state.deaf = true;
    if (how === 'drop') state.socket.destroy();
    if (how === 'reset') state.socket.resetAndDestroy();
  };
  const say = (text: string, then: (code: number) => void) => {
    state.output += text + CRLF;
    then(codeOf(text));
  };

  return {
    flush,
    busy: () => state.busy,
    deaf: () => state.deaf,
    deafen: () => {
      state.deaf = true;
    },
    moveTo: (socket) => {
      state.socket = socket;
    },
    perform: (answer, then = () => undefined) => {
      if (answer === 'drop' || answer === 'reset' || answer === 'silent') fallSilent(answer);
      else if (typeof answer === 'string') say(answer, then);
      else if (Array.isArray(answer)) say(answer.join(CRLF), then);
      else if ('delayMs' in answer) later(answer.delayMs, () => say(answer.reply, then));
      else if ('bytesPerSecond' in answer) {
        dribble(answer.reply + CRLF, 1000 / answer.bytesPerSecond, () => then(codeOf(answer.reply)));
      } else {
        say(answer.reply, then);
        flush();
        state.deaf = true;
        state.socket.end();
      }
    },
  };
}

function codeOf(reply: string): number {
  return Number(reply.slice(0, 3));
}
