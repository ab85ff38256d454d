import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { Time } from '../../parts/time.tsx';
import { Card, Confirmed, Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { SuppressionTable } from './suppression-table.tsx';
import type { ListedSuppression } from './suppressions.tsx';

const PATH = '/web-setup/suppressions';

/** Fields of an event that explain a suppression. */
interface EvidenceEvent {
  eventId: string;
  event: string;
  timestamp: string;
  messageId?: string | null;
  subject?: string;
  smtpCode?: number | null;
  diagnostic?: string;
  remoteHost?: string;
  remoteMta?: string | null;
  feedbackType?: string;
  method?: string;
}

/** The suppressions of an address, what happened before them, and their removal. */
export function SuppressionPage({ identifier }: { identifier: string }) {
  const { t } = useTexts();
  const { accountId, may } = useMember();
  const data = useOperation(PATH, { email: identifier });
  const { outcome, run } = useAction();
  const remove = ({ reason, stream }: ListedSuppression, note: string) =>
    run(async () => {
      const { removed } = await operate('delete', PATH, {
        account: accountId,
        body: { email: identifier, reason, stream, note },
      });
      data.reload();
      return t('suppressions.removed', { count: removed, address: identifier });
    });
  const address = data.value?.suppressions.find(({ email }) => email !== null)?.email ?? identifier;
  return (
    <Page title={address} curl={addressOf(PATH, { email: identifier })}>
      <Outcome of={outcome} />
      <Card title={t('page.suppressions')}>
        <Loaded data={data} isList>
          {({ suppressions }) =>
            suppressions.length === 0 ? (
              <Empty title={t('suppressions.notBlocked')} icon="circle-check">
                <p>{t('suppressions.notBlocked.hint')}</p>
              </Empty>
            ) : (
              <SuppressionTable
                suppressions={suppressions}
                change={
                  may('deleteSuppressions')
                    ? (each) => (
                        <Confirmed
                          label={t('suppressions.remove')}
                          question={t(
                            each.reason === 'complaint' || each.reason === 'unsubscribe'
                              ? 'suppressions.remove.refused'
                              : 'suppressions.remove.confirm',
                            { email: address },
                          )}
                          reason={t('suppressions.remove.note')}
                          action={(note) => remove(each, note)}
                        />
                      )
                    : undefined
                }
              />
            )
          }
        </Loaded>
      </Card>
      <Card title={t('suppressions.evidence')}>
        <Evidence identifier={identifier} />
      </Card>
      {/* Read again when the suppressions have changed. */}
      <Removals key={data.value?.suppressions.length} identifier={identifier} />
    </Page>
  );
}

function Removals({ identifier }: { identifier: string }) {
  const { t, time } = useTexts();
  const data = useOperation('/web-setup/suppressions/removals', { email: identifier });
  return (
    <Loaded data={data}>
      {({ removals }) =>
        removals.length === 0 ? null : (
          <Card title={t('suppressions.removals')}>
            <Table
              label={t('suppressions.removals')}
              isList
              heads={[
                t('suppressions.reason'),
                t('suppressions.stream'),
                t('suppressions.since'),
                t('suppressions.remove.note'),
                t('suppressions.removedBy'),
                { text: t('suppressions.removedAt'), end: true },
              ]}
            >
              {removals.map((each) => (
                <tr key={`${each.removedAt} ${each.reason} ${each.stream}`}>
                  <th scope="row">{t(`suppressions.reason.${each.reason}`)}</th>
                  <td class="aside">{t(`suppressions.stream.${each.stream}`)}</td>
                  <td>{time(each.suppressedAt)}</td>
                  <td class="second">{each.note ?? ''}</td>
                  <td>{each.removedBy}</td>
                  <td class="when">{time(each.removedAt)}</td>
                </tr>
              ))}
            </Table>
          </Card>
        )
      }
    </Loaded>
  );
}

function Evidence({ identifier }: { identifier: string }) {
  const { t, named } = useTexts();
  const { href } = useNavigation();
  const lists = [
    useEvents(identifier, 'email_bounced'),
    useEvents(identifier, 'email_complained'),
    useEvents(identifier, 'email_unsubscribed'),
  ];
  const failed = lists.find(({ error, value }) => error !== null && value === null);
  if (failed !== undefined) return <Loaded data={failed}>{() => null}</Loaded>;
  const waiting = lists.find(({ value }) => value === null);
  if (waiting !== undefined) return <Loaded data={waiting}>{() => null}</Loaded>;
  const events: EvidenceEvent[] = lists
    .flatMap(({ value }) => value?.events ?? [])
    .sort((a, b) => b.timestamp.localeCompare(a.timestamp));
  if (events.length === 0)
    return (
      <p class="all-well">
        {t('suppressions.evidence.none')}. {t('suppressions.evidence.none.hint')}
      </p>
    );
  return (
    <Table
      label={t('suppressions.evidence')}
      isList
      heads={[
        t('suppressions.event'),
        t('queue.reply'),
        t('suppressions.message'),
        { text: t('audit.time'), end: true },
      ]}
    >
      {events.map((each) => (
        <tr key={each.eventId}>
          <th scope="row">
            {named('event', each.event)}
            <p class="small">{each.feedbackType ?? each.method ?? ''}</p>
          </th>
          <td class="value second">
            {[each.smtpCode, each.diagnostic].filter(Boolean).join(' ')}
            <p class="small">{each.remoteHost ?? each.remoteMta ?? ''}</p>
          </td>
          <td class="aside">
            {each.messageId !== undefined && each.messageId !== null && (
              <a href={href(`messages/${encodeURIComponent(each.messageId)}`)}>
                {each.subject || each.messageId}
              </a>
            )}
          </td>
          <td class="when">
            <Time at={each.timestamp} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function useEvents(recipient: string, event: string) {
  return useOperation('/web-setup/events', { recipient, event, limit: 20 });
}
