import { useState } from 'preact/hooks';
import { ApiError, operate } from '../api.ts';
import { useConsoleData, useOperation } from '../data.ts';
import type { DataOf } from '../operations.ts';
import { Outcome, useAction } from '../parts.tsx';
import { useNavigation } from '../routing.ts';
import { useMember } from '../session.ts';
import { useTexts } from '../texts.ts';
import { SenderField } from './sender-field.tsx';

type Stream = DataOf<'/web-setup/domains'>['domains'][number]['useCase'];

/** As the server limits the recipients of a test message. */
const MAX_RECIPIENTS = 5;

interface TestMessageProps {
  templateId: string;
  /** Null: the template can be sent in both streams. */
  stream: Stream | null;
  /** The sender; not set: the person enters it. */
  from?: string | undefined;
  /** Replaces the subject of the template. */
  subject?: string | undefined;
  variables: Readonly<Record<string, unknown>>;
  /** Whether the page has the heading. */
  isBare?: boolean;
}

/** Sends a stored template to people of the account, who need not be contacts; at first to the person who is signed in. */
export function TestMessage({
  templateId,
  stream,
  from,
  subject,
  variables,
  isBare = false,
}: TestMessageProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { accountId, person } = useMember();
  const listed = useOperation(from === undefined ? '/web-setup/domains' : null);
  const people = useConsoleData<{ recipients: string[] }>('/console/test-recipients', accountId);
  const [chosen, setChosen] = useState<readonly string[]>([person.email]);
  const { outcome, run } = useAction();
  const others = (people.value?.recipients ?? []).filter((email) => email !== person.email);
  const domains = (listed.value?.domains ?? []).filter(
    ({ status, useCase }) =>
      (status === 'SUCCESS' || status === 'TEMPORARY_FAILURE') && (stream === null || useCase === stream),
  );
  const send = (sender: string) =>
    run(async () => {
      const ofSender = domains.find(({ domain }) =>
        sender.replace(/>\s*$/, '').trim().endsWith(`@${domain}`),
      );
      const useCase = stream ?? ofSender?.useCase ?? 'mk';
      const addresses = chosen.join(', ');
      try {
        const { messages } = await operate('post', '/web-setup/templates/{templateId}/test', {
          account: accountId,
          parameters: { templateId },
          body: {
            to: [...chosen],
            type: useCase === 'mk' ? 'marketing' : 'transactional',
            from: sender,
            subject,
            templateVariables: { ...variables },
          },
        });
        return t('test.sent', { address: messages.map(({ recipient }) => recipient).join(', ') });
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const text = { RECIPIENT_SUPPRESSED: 'test.suppressed', RATE_LIMITED: 'test.limit' } as const;
        const own =
          error.code === 'RECIPIENT_SUPPRESSED' || error.code === 'RATE_LIMITED' ? text[error.code] : null;
        throw own === null ? error : new Error(t(own, { address: addresses }));
      }
    });
  return (
    <section aria-label={t('campaigns.test')}>
      {!isBare && <h2>{t('campaigns.test')}</h2>}
      <p class="small">{t('test.hint')}</p>
      {from === undefined && listed.value !== null && domains.length === 0 ? (
        <p>
          {t('test.noDomain')} <a href={href('domains')}>{t('page.domains')}</a>
        </p>
      ) : (
        <form
          class="search"
          onSubmit={(event) => {
            event.preventDefault();
            const entered = new FormData(event.currentTarget).get('from');
            void send(from ?? (typeof entered === 'string' ? entered.trim() : ''));
          }}
        >
          {from === undefined && (
            <SenderField
              key={domains[0]?.domain ?? ''}
              value={domains[0] === undefined ? '' : `hello@${domains[0].domain}`}
            />
          )}
          <fieldset class="group">
            <legend>{t('test.to', { max: MAX_RECIPIENTS })}</legend>
            {[person.email, ...others].map((email) => {
              const isChosen = chosen.includes(email);
              return (
                <label class="check" key={email}>
                  <input
                    class="tick"
                    type="checkbox"
                    checked={isChosen}
                    disabled={!isChosen && chosen.length >= MAX_RECIPIENTS}
                    onChange={() =>
                      setChosen(isChosen ? chosen.filter((one) => one !== email) : [...chosen, email])
                    }
                  />
                  {email}
                </label>
              );
            })}
          </fieldset>
          <div class="actions">
            <button class="button" type="submit" disabled={outcome?.running === true || chosen.length === 0}>
              {t('test.send')}
            </button>
            <a class="button" href={href('messages', { recipient: chosen[0] ?? person.email })}>
              {t('page.messages')}
            </a>
          </div>
        </form>
      )}
      <Outcome of={outcome} />
    </section>
  );
}
