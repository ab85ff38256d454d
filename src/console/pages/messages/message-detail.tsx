import { useEffect, useRef } from 'preact/hooks';
import { newIdempotencyKey, operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { useReasons } from '../../parts/failure-reason.ts';
import { fieldText } from '../../parts/field-text.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { localTime } from '../../parts/local-time.ts';
import { Timeline, TimelineItem } from '../../parts/timeline.tsx';
import { toast } from '../../parts/toast.tsx';
import { type ChipKind, Confirmed, kindOfStatus, Loaded, Notice, Outcome, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { MessageContent } from './message-content.tsx';

const PATH = '/web-setup/messages/{id}';

type Message = DataOf<typeof PATH>;
/** An event or an SMTP attempt; the fields depend on the event. */
type TimelineEntry = Message['timeline'][number];

/** A message: its state and timeline, and the actions that its state permits. */
export function MessageDetail({ messageId, list }: { messageId: string; list: string }) {
  const { t, time } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may, has } = useMember();
  const data = useOperation(PATH, { id: messageId });
  const { outcome, run } = useAction();
  const act = (verb: 'retry' | 'cancel') =>
    run(async () => {
      await operate('post', `${PATH}/${verb}`, { account: accountId, parameters: { id: messageId } });
      data.reload();
      toast(t(verb === 'retry' ? 'messages.retried' : 'messages.cancelled'));
      return '';
    });
  const reschedule = (scheduledAt: string) =>
    run(async () => {
      await operate('patch', PATH, {
        account: accountId,
        parameters: { id: messageId },
        body: { scheduledAt },
      });
      data.reload();
      toast(t('messages.rescheduled'));
      return '';
    });
  // One for all attempts to send it again, so that a response that is lost causes no second message.
  const resendKey = useRef(newIdempotencyKey());
  const resend = () =>
    run(async () => {
      const sent = await operate('post', '/transactional/resend', {
        account: accountId,
        body: { messageId },
        idempotencyKey: resendKey.current,
      });
      resendKey.current = newIdempotencyKey();
      go(href(`messages/${encodeURIComponent(sent.messageId)}`));
      toast(t('messages.resent'));
      return '';
    });
  useEscape(() => go(list));
  return (
    <article class="detail" aria-label={t('messages.details')}>
      <div class="detail-head">
        <h2>{data.value?.subject}</h2>
        <a class="button ghost icon-only" href={list} aria-label={t('app.back')} title={t('app.back')}>
          <Icon name="x" />
        </a>
      </div>
      <Loaded data={data}>
        {(message) => {
          const isScheduled = message.status === 'scheduled';
          const isWaiting = isScheduled || message.status === 'queued' || message.status === 'deferred';
          const facts: (readonly [string, string])[] = [
            [t('messages.sender'), message.from],
            [t('messages.recipientColumn'), message.recipient],
            [t('messages.created'), time(message.createdAt)],
            [t('messages.attempts'), String(message.attempts)],
            [t('messages.next'), time(message.nextAttemptAt)],
            ...(message.tags === undefined ? [] : [[t('messages.tags'), message.tags.join(', ')] as const]),
            ...Object.entries(message.metadata ?? {}),
            ['ID', message.messageId],
          ];
          return (
            <>
              <Verdict of={message} />
              {isWaiting && (
                <div class="actions">
                  {message.status === 'deferred' && may('retryMessage') && (
                    <button class="button" type="button" onClick={() => void act('retry')}>
                      {t('messages.retry')}
                    </button>
                  )}
                  {may('cancelMessage') && (
                    <Confirmed
                      isDanger
                      label={t('messages.cancel')}
                      question={t('messages.cancel.confirm')}
                      action={() => act('cancel')}
                    />
                  )}
                  {has('operator') && (
                    <a class="button" href={href(`queue/messages/${encodeURIComponent(messageId)}`)}>
                      {t('messages.why')}
                    </a>
                  )}
                  {!may('cancelMessage') && <p class="small">{t('messages.notAllowed')}</p>}
                </div>
              )}
              {isScheduled && may('rescheduleMessage') && (
                <Reschedule scheduledAt={message.scheduledAt ?? ''} onMove={(to) => void reschedule(to)} />
              )}
              {!isWaiting && message.useCase === 'tx' && may('resendTransactional') && (
                <div class="actions">
                  <Confirmed
                    label={t('messages.resend')}
                    question={t('messages.resend.confirm', { recipient: message.recipient })}
                    action={resend}
                  />
                </div>
              )}
              <Outcome of={outcome} />
              {message.timeline.length > 0 && (
                <>
                  <h3>{t('messages.timeline')}</h3>
                  <Timeline>
                    {message.timeline.map((entry, index) => (
                      <Entry key={`${entry.timestamp} ${index}`} entry={entry} verdict={message.reason} />
                    ))}
                  </Timeline>
                </>
              )}
              {may('getMessageContent') && <MessageContent messageId={messageId} />}
              <h3>{t('messages.details')}</h3>
              <FactList facts={facts} />
            </>
          );
        }}
      </Loaded>
    </article>
  );
}

/** Changes when a scheduled message is sent. `scheduledAt`: ISO 8601. */
function Reschedule({ scheduledAt, onMove }: { scheduledAt: string; onMove: (time: string) => void }) {
  const { t } = useTexts();
  return (
    <form
      class="actions"
      onSubmit={(event) => {
        event.preventDefault();
        // In UTC: the server may be in another time zone.
        onMove(new Date(fieldText(new FormData(event.currentTarget), 'time')).toISOString());
      }}
    >
      <label class="field">
        {t('messages.reschedule.time')}
        <input
          key={scheduledAt}
          class="input"
          name="time"
          type="datetime-local"
          required
          defaultValue={localTime(Date.parse(scheduledAt))}
        />
      </label>
      <button class="button" type="submit">
        {t('messages.reschedule')}
      </button>
    </form>
  );
}

/** Calls `close` when the Escape key is pressed, unless it closes a dialog or a menu. */
function useEscape(close: () => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isOverlaid = document.querySelector('dialog[open], :popover-open') !== null;
      if (event.key === 'Escape' && !isOverlaid) close();
    };
    window.addEventListener('keydown', press);
    return () => window.removeEventListener('keydown', press);
  });
}

/** What became of the message, why, and what to do. */
function Verdict({ of: message }: { of: Message }) {
  const { t, named } = useTexts();
  const { cause } = useReasons();
  const { status, reason, heldBecause } = message;
  const why = heldBecause === undefined ? cause(reason) : named('hold', heldBecause);
  const name = capitalized(named('status', status));
  return (
    <Notice
      kind={kindOfStatus(status)}
      title={why === '' ? name : t('messages.verdict', { status: name, cause: why })}
    >
      {useAdvice(message).map((text) => (
        <p key={text}>{text}</p>
      ))}
    </Notice>
  );
}

/** What happens next with a message, or what can be done. */
function useAdvice({ status, reason, heldBecause, nextAttemptAt, simulated }: Message): string[] {
  const { t, time } = useTexts();
  const { remedy } = useReasons();
  const isFinal = status === 'bounced' || status === 'failed';
  const advice: string[] = [];
  if (isFinal || status === 'deferred') advice.push(remedy(reason, isFinal));
  else if (status !== 'queued' && status !== 'scheduled') advice.push(t(`messages.verdict.${status}`));
  else if (heldBecause === undefined && nextAttemptAt === undefined)
    advice.push(t('messages.verdict.queued'));
  if (nextAttemptAt !== undefined)
    advice.push(
      t(status === 'deferred' ? 'messages.verdict.deferred' : 'messages.verdict.scheduled', {
        time: time(nextAttemptAt),
      }),
    );
  if (simulated === true) advice.push(capitalized(t('messages.simulated')));
  return advice.filter((text) => text !== '');
}

/** The text with a capital first letter. */
function capitalized(text: string): string {
  return text.charAt(0).toLocaleUpperCase() + text.slice(1);
}

interface EntryProps {
  entry: TimelineEntry;
  /** The reason that the verdict explains. */
  verdict: string | undefined;
}

function Entry({ entry, verdict }: EntryProps) {
  const { t, time, named } = useTexts();
  const { cause, remedy } = useReasons();
  const { type, timestamp, ...fields } = entry;
  const text = (name: string): string => {
    const value = fields[name];
    return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  };
  const title =
    type === 'attempt' ? t('messages.attempt', { number: text('attempt') }) : named('event', text('event'));
  const reply = [text('smtpCode'), text('enhancedCode'), text('diagnostic')].filter(Boolean).join(' ');
  const kind = kindOfEvent(text('event'));
  const host = text('remoteHost') || text('remoteMta');
  const next = text('nextAttemptAt');
  // An attempt has the class of its event.
  const reason = type === 'attempt' ? '' : text('classification');
  return (
    <TimelineItem
      kind={kind}
      title={title}
      at={timestamp}
      reply={
        reply === ''
          ? ''
          : host === ''
            ? t('messages.reply.noHost', { reply })
            : t('messages.reply', { host, reply })
      }
      remedy={reason === verdict ? '' : [cause(reason), remedy(reason)].filter(Boolean).join('. ')}
    >
      {next !== '' && (
        <p>
          {t('messages.next')}: {time(next)}
        </p>
      )}
      <details>
        <summary>{t('messages.raw')}</summary>
        <pre tabIndex={0}>{JSON.stringify(fields, null, 2)}</pre>
      </details>
    </TimelineItem>
  );
}

/** What an event or an attempt (without a name) means, by the end of its name: such as `email_bounced`. */
function kindOfEvent(name: string): ChipKind {
  return name === '' ? 'idle' : kindOfStatus(name.replace(/^[a-z]+_/, ''));
}
