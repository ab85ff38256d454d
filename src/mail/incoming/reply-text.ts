/**
 * The text that the author of a reply wrote, without what the mail program quoted. Pure; the time is linear in the length of the text.
 *
 * Quoted lines begin with `>`, after a line such as "On Monday Ann wrote:", which may be broken into up to four lines. Programs
 * that do not mark quoted lines begin them with a separator or with the header of the answered mail: everything after it is
 * quoted. Answers between or below quoted lines are kept.
 */
export function replyText(text: string): string {
  const lines = text.replaceAll('\r\n', '\n').replaceAll('\u00a0', ' ').split('\n');
  const kept: string[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (isQuoted(line)) {
      removeAttribution(kept);
      while (at < lines.length && isQuoted(lines[at] ?? '')) at++;
      continue;
    }
    if (isSeparator(line) || isQuotedHeader(lines, at)) break;
    const attributed = attributionLines(lines, at);
    // Not before quoted lines: the program does not mark them.
    if (attributed > 0 && !hasQuotedLine(lines, at + attributed)) break;
    kept.push(line);
    at++;
  }
  return kept
    .join('\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim();
}

/** Lines that a broken attribution has at most. */
const MAX_ATTRIBUTION_LINES = 4;
const MAX_ATTRIBUTION_CHARACTERS = 400;
/** Lines after an attribution in which quoted lines begin. */
const MAX_GAP = 3;

function isQuoted(line: string): boolean {
  return /^ {0,3}>/.test(line);
}

function hasQuotedLine(lines: readonly string[], from: number): boolean {
  return lines.slice(from, from + MAX_GAP).some(isQuoted);
}

/** Removes the attribution at the end of what was kept, and empty lines after it. */
function removeAttribution(kept: string[]): void {
  let end = kept.length;
  while (end > 0 && kept[end - 1]?.trim() === '') end--;
  for (let count = Math.min(MAX_ATTRIBUTION_LINES, end); count > 0; count--) {
    const start = end - count;
    if (attributionLines(kept.slice(start, end), 0) !== count) continue;
    kept.length = start;
    return;
  }
}

/** How many lines from this one on are an attribution; 0: they are none. */
function attributionLines(lines: readonly string[], at: number): number {
  const first = lines[at]?.trim() ?? '';
  if (!STARTS.test(first)) return 0;
  let joined = '';
  for (let count = 1; count <= MAX_ATTRIBUTION_LINES; count++) {
    const line = lines[at + count - 1]?.trim() ?? '';
    if (line === '') return 0;
    joined = `${joined} ${line}`;
    if (joined.length > MAX_ATTRIBUTION_CHARACTERS) return 0;
    if (line.endsWith(':') && VERBS.test(joined)) return count;
  }
  return 0;
}

/** The beginnings and the verbs of attributions in the languages of the widespread programs. */
const STARTS =
  /^(?:on|am|le|el|il|op|em|den|dne|w dniu|dnia|\d{1,4}[-./年])\b|^(?:на|в|\d{1,4}年)|(?:wrote|schrieb|schreef|skrev|napisał(?:\(a\))?|написал\(?а?\)?|escribió|escreveu|écrit|scritto)\s?:$/i;
const VERBS =
  /\b(?:wrote|writes|schrieb|schreef|geschreven|skrev|napisał|napsal|escribió|escreveu|scritto)\b|a écrit|написал|пишет|写道|のメール/i;

/** Lines that begin a quoted mail without marks. */
function isSeparator(line: string): boolean {
  const text = line.trim();
  if (text.length > 100) return false;
  return (
    /^-{2,20} ?(?:original message|ursprüngliche nachricht|message d'origine|mensaje original|messaggio originale|mensagem original|oorspronkelijk bericht|forwarded message|weitergeleitete nachricht|reply message) ?-{2,20}$/i.test(
      text,
    ) || /^_{20,100}$/.test(text)
  );
}

/** The header of the answered mail as Outlook writes it: From, Sent, To, Subject in its language, on lines of their own. */
function isQuotedHeader(lines: readonly string[], at: number): boolean {
  const first = unmarked(lines[at] ?? '');
  if (!/^(?:from|von|de|da|van|från|fra|od|от):\s?\S/i.test(first)) return false;
  const next = lines.slice(at + 1, at + 6).map(unmarked);
  const fields = next.filter((line) =>
    /^(?:sent|date|to|subject|gesendet|datum|an|betreff|envoyé|à|objet|enviado|fecha|para|asunto|inviato|data|a|oggetto|verzonden|aan|onderwerp|assunto|отправлено|кому|тема):/i.test(
      line,
    ),
  );
  return fields.length >= 2;
}

/** Without the asterisks of a text that was bold. */
function unmarked(line: string): string {
  return line.slice(0, 300).replaceAll('*', '').trim();
}
