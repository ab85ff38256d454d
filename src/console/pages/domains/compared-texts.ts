import { diffArrays } from 'diff';

/** A part of a text, and whether the other text lacks it. */
export interface ComparedText {
  text: string;
  isDifferent: boolean;
}

/** What was expected and what was found, word by word: spaces and semicolons separate the words of a record. */
export function comparedTexts(
  expected: string,
  found: string,
): { expected: ComparedText[]; found: ComparedText[] } {
  const result: ReturnType<typeof comparedTexts> = { expected: [], found: [] };
  for (const { value, added, removed } of diffArrays(wordsOf(expected), wordsOf(found))) {
    const text = value.join('');
    if (!added) result.expected.push({ text, isDifferent: removed });
    if (!removed) result.found.push({ text, isDifferent: added });
  }
  return result;
}

const wordsOf = (text: string) => text.split(/(\s+|;)/).filter((word) => word !== '');
