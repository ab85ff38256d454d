import { useEffect, useState } from 'preact/hooks';

const TYPING_MS = 250;

/** What a person enters, as it was when they last paused: for requests that not every key press has to cause. */
export function useRested<T>(value: T): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setRested(value), TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [value]);
  return rested;
}
