/** https://invisible-island.net/xterm/ctlseqs/ctlseqs.html */
const OPEN = '\x1b[?1049h\x1b[?25l';
const CLOSE = '\x1b[?25h\x1b[?1049l';
const HOME = '\x1b[H';
const CLEAR_LINE = '\x1b[K';
const CLEAR_BELOW = '\x1b[J';
/** q, Q, Ctrl-C, Ctrl-D and Escape alone. */
const QUIT_KEYS = new Set(['q', 'Q', '\x03', '\x04', '\x1b']);
/** Exit statuses are those of a shell: 128 + the number of the signal. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
const DEFAULT_SIZE = { width: 80, height: 24 };

/**
 * The terminal as one screen: the alternate buffer without a cursor, keys without echo. The terminal is restored however
 * the command ends: by a key, a signal, an error or `process.exit`; only SIGKILL leaves it as it is (`reset` restores it).
 * Both standard input and output must be a terminal.
 */
export function openScreen(stdin = process.stdin, stdout = process.stdout) {
  const closing = new AbortController();
  const undo: (() => void)[] = [];
  let isOpen = true;

  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    for (const step of undo.splice(0)) step();
    stdin.setRawMode(false);
    stdin.pause();
    stdout.write(CLOSE);
    closing.abort();
  };

  const onKeys = (keys: Buffer) => {
    const text = keys.toString('latin1');
    // Keys that arrive together are single characters; sequences such as arrow keys begin with Escape.
    if (text.startsWith('\x1b') ? text === '\x1b' : Array.from(text).some((key) => QUIT_KEYS.has(key)))
      close();
  };
  stdin.on('data', onKeys);
  stdin.once('end', close);
  // Runs for process.exit and after an uncaught exception, too.
  process.once('exit', close);
  undo.push(
    () => stdin.off('data', onKeys),
    () => stdin.off('end', close),
    () => process.off('exit', close),
  );
  for (const [signal, status] of Object.entries(SIGNALS)) {
    const onSignal = () => {
      process.exitCode = status;
      close();
    };
    process.once(signal, onSignal);
    undo.push(() => process.off(signal, onSignal));
  }
  stdin.setRawMode(true);
  stdin.resume();
  stdout.write(OPEN);

  return {
    /** Columns and rows. */
    size: () => ({
      width: stdout.columns > 0 ? stdout.columns : DEFAULT_SIZE.width,
      height: stdout.rows > 0 ? stdout.rows : DEFAULT_SIZE.height,
    }),
    /** Replaces the content. Lines must not be wider than the screen. */
    draw: (lines: readonly string[]): void => {
      if (isOpen) stdout.write(`${HOME}${lines.map((line) => line + CLEAR_LINE).join('\r\n')}${CLEAR_BELOW}`);
    },
    onResize: (callback: () => void): void => {
      stdout.on('resize', callback);
      undo.push(() => stdout.off('resize', callback));
    },
    /** Aborts when the user quits or a signal ends the process. */
    closed: closing.signal,
    /** Restores the terminal. May be called more than once. */
    close,
  };
}
