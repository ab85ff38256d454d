import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api.ts';
import { useTexts } from '../texts.ts';
import { toast } from './toast.tsx';

/** Actions that wait, and those that were carried out since the list was read, by the key of what they change. */
const held = new Set<string>();
const done = new Set<string>();
/** What is called when they change. `isDone`: one was carried out. */
const followers = new Set<(isDone: boolean) => void>();

function notify(isDone: boolean): void {
  for (const follow of followers) follow(isDone);
}

interface HeldAction {
  /** What it changes: its row shows the change already. */
  key: string;
  /** What was done, in words. */
  text: string;
  /** The request. `keepalive`: it must outlive the page. */
  action: (options: { keepalive: boolean }) => Promise<unknown>;
  /** Called when the request failed or was undone. */
  onUndone?: () => void;
}

interface HeldActions {
  /** Whether an action on this waits, or was carried out and is not yet in the list. */
  isHeld(key: string): boolean;
  /** Shows the action as done, and carries it out when its toast goes, unless the person takes it back. */
  hold(action: HeldAction): void;
}

/**
 * Actions that can be taken back: the request is sent when its toast goes, also because the page is left. A failure is shown.
 * `value`: the list that they change; `reload`: reads it again.
 */
export function useHeldActions(value: unknown, reload: () => void): HeldActions {
  const { t, errorText } = useTexts();
  const [, setTurn] = useState(0);
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => {
    const follow = (isDone: boolean) => {
      setTurn((turn) => turn + 1);
      if (isDone) latest.current();
    };
    followers.add(follow);
    return () => {
      followers.delete(follow);
    };
  }, []);
  useEffect(() => {
    // The list was read after they were carried out.
    done.clear();
    setTurn((turn) => turn + 1);
  }, [value]);
  return {
    isHeld: (key) => held.has(key) || done.has(key),
    hold: ({ key, text, action, onUndone }) => {
      held.add(key);
      notify(false);
      const release = () => {
        held.delete(key);
        onUndone?.();
        notify(false);
      };
      toast(text, {
        undo: release,
        onGone: (isLeaving) =>
          action({ keepalive: isLeaving }).then(
            () => {
              held.delete(key);
              done.add(key);
              notify(true);
            },
            (error: unknown) => {
              release();
              if (!(error instanceof ApiError)) throw error;
              toast(t('app.undo.failed', { text, error: errorText(error) }), { isBad: true });
            },
          ),
      });
    },
  };
}
