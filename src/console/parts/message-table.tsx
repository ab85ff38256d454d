import type { DataOf } from '../operations.ts';
import { Status, Table } from '../parts.tsx';
import { useNavigation } from '../routing.ts';
import { useTexts } from '../texts.ts';
import { useReasons } from './failure-reason.ts';
import { Time } from './time.tsx';

interface MessageTableProps {
  messages: readonly DataOf<'/web-setup/messages'>['messages'][number][];
  label: string;
  /** Filters of the list: they remain in the address of each message. */
  filters: Readonly<Record<string, string | undefined>>;
}

/** Messages, each with a link to its page. */
export function MessageTable({ messages, label, filters }: MessageTableProps) {
  const { t, named } = useTexts();
  const { cause } = useReasons();
  const { href, location } = useNavigation();
  const [, current] = location.segments;
  return (
    <Table
      label={label}
      isList
      heads={[
        t('messages.recipientColumn'),
        t('messages.subject'),
        t('messages.status'),
        t('messages.why.column'),
        { text: t('messages.created'), end: true },
      ]}
    >
      {messages.map(
        ({ messageId, subject, recipient, status, simulated, reason, heldBecause, createdAt }) => (
          <tr key={messageId} class={messageId === current ? 'current' : ''}>
            <th scope="row">
              <a
                href={href(`messages/${encodeURIComponent(messageId)}`, filters)}
                aria-current={messageId === current ? 'true' : undefined}
                // Several messages may have the same recipient.
                aria-label={`${recipient}: ${subject || messageId}`}
              >
                {recipient}
              </a>
            </th>
            <td class="second">{subject || messageId}</td>
            <td class="aside">
              <Status name={status} />{' '}
              {simulated === true && <span class="small">{t('messages.simulated')}</span>}
            </td>
            <td class="why">{heldBecause === undefined ? cause(reason) : named('hold', heldBecause)}</td>
            <td class="when">
              <Time at={createdAt} />
            </td>
          </tr>
        ),
      )}
    </Table>
  );
}
