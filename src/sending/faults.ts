import { type Refusal, type RefusalDetail, refuse, shortened } from '../core/refusal.ts';

/** Reports that a field of a request is invalid. `message` completes a sentence: `must be …`. */
export type Fault = (field: string, message: string) => void;

/** Faults that a response lists; the rest are counted. */
const MAX_FAULTS = 50;
/** Characters of the path of a field and of a message, which can quote the request. */
const MAX_FIELD_LENGTH = 128;
const MAX_MESSAGE_LENGTH = 300;

/** Returns the result of `parse`, or a VALIDATION_ERROR with the faults that it reported. */
export function collectFaults<Parsed>(parse: (fault: Fault) => Parsed | null): Parsed | Refusal {
  const faults: RefusalDetail[] = [];
  let count = 0;
  const parsed = parse((field, message) => {
    count++;
    if (faults.length === MAX_FAULTS) return;
    faults.push({
      field: shortened(field, MAX_FIELD_LENGTH),
      message: shortened(message, MAX_MESSAGE_LENGTH),
    });
  });
  const [first] = faults;
  if (first === undefined && parsed !== null) return parsed;
  const sentence = first ? `${first.field}: ${first.message}` : 'The request is not valid';
  const more = count > 1 ? ` (and ${count - 1} more)` : '';
  return refuse('VALIDATION_ERROR', `${sentence}${more}`, { details: faults });
}
