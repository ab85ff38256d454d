import { useState } from 'preact/hooks';
import { useUnsavedWarning } from '../routing.ts';

/** Whether a form has changes that are not saved. */
export interface ChangedForm {
  /** A function that sets a value as `set` does, and makes the form one with changes. */
  changing<Value>(set: (value: Value) => void): (value: Value) => void;
  /** Everything is saved. */
  saved(): void;
}

/** A form that is left with changes only after a question. */
export function useChangedForm(question: string): ChangedForm {
  const [isChanged, setIsChanged] = useState(false);
  useUnsavedWarning(isChanged, question);
  return {
    changing: (set) => (value) => {
      setIsChanged(true);
      set(value);
    },
    saved: () => setIsChanged(false),
  };
}
