import type { DeliveredMail } from './servers/receiver.ts';
import type { ReceivedCall } from './servers/webhook-receiver.ts';

/** A DNS record of an API response. */
export interface DnsRecordOutput {
  type: string;
  name: string;
  value: string;
  ttl?: number;
  priority?: number;
}

/** Output of the demo: numbered steps and indented lines that fit a terminal. */
export interface Output {
  step(title: string): void;
  line(text: string): void;
  /** A request and its status; the unique part of ids is omitted. */
  request(method: string, path: string, status: number): void;
  records(records: readonly DnsRecordOutput[]): void;
  timeline(entries: readonly Record<string, unknown>[]): void;
  mail(mail: DeliveredMail): void;
  /** Webhook calls in order of arrival, with the recipients or domains they concern. */
  webhook(calls: readonly ReceivedCall[]): void;
}

const WIDTH = 76;
const UNIQUE_PART = /_\d{13}_[0-9a-z]{12}/g;

/**
 * Numbers steps from 1, indents everything else by three spaces and shortens values to 76 characters. `print` receives
 * text without a final line break.
 */
export function createOutput(print: (text: string) => void): Output {
  let steps = 0;
  const line = (text: string) => print(`   ${text}`);
  return {
    step: (title) => print(`\n${++steps}. ${title}`),
    line,
    request: (method, path, status) => line(`${method} ${path.replaceAll(UNIQUE_PART, '_…')} -> ${status}`),
    records: (records) => {
      for (const { type, name, value, priority } of records) {
        line(`  ${type.padEnd(5)} ${name}`);
        line(`        ${shorten(priority === undefined ? value : `${priority} ${value}`)}`);
      }
    },
    timeline: (entries) => {
      for (const entry of entries) line(`  ${String(entry['timestamp']).slice(11, 23)}  ${describe(entry)}`);
    },
    mail: ({ from, to, dkim, tls, mail }) => {
      line(`envelope     ${from} -> ${to}${tls === null ? '' : `, encrypted (${tls})`}`);
      line(`From         ${mail.from?.text ?? ''}`);
      line(`Subject      ${mail.subject ?? ''}`);
      line(`DKIM         ${dkim}`);
      line(`Text         ${shorten((mail.text ?? '').replace(/\s+/g, ' '))}`);
    },
    webhook: (calls) => {
      const subjects = new Set(calls.map(({ data: { object } }) => object.recipient ?? object.domain));
      line(`webhook calls: ${calls.map(({ type }) => type).join(', ')} (${[...subjects].join(', ')})`);
    },
  };
}

function describe(entry: Record<string, unknown>): string {
  if (entry['type'] === 'event') return String(entry['event']);
  const sessions = entry['sessions'] as {
    host: string;
    address: string;
    reply: { code: number; text: string } | null;
    tls: { protocol: string } | null;
  }[];
  const last = sessions.at(-1);
  if (last === undefined) return 'attempt';
  const how = last.tls === null ? 'in plain text' : last.tls.protocol;
  return shorten(
    `SMTP to ${last.host} [${last.address}], ${how}: ${last.reply?.code ?? ''} ${last.reply?.text ?? 'no reply'}`,
  );
}

function shorten(text: string): string {
  return text.length <= WIDTH ? text : `${text.slice(0, WIDTH - 1)}…`;
}
