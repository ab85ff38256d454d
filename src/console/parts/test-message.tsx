import { ApiError, request } from '../api.ts';
import { useOperation } from '../data.ts';
import type { DataOf } from '../operations.ts';
import { Outcome, useAction } from '../parts.tsx';
import { useNavigation } from '../routing.ts';
import { useMember } from '../session.ts';
import { useTexts } from '../texts.ts';
import { SenderField } from './sender-field.tsx';

type Stream = DataOf<'/web-setup/domains'>['domains'][number]['useCase'];

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

/** Sends a stored template to the person who is signed in, who need not be a contact. */
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
  const { outcome, run } = useAction();
  const domains = (listed.value?.domains ?? []).filter(
    ({ status, useCase }) =>
      (status === 'SUCCESS' || status === 'TEMPORARY_FAILURE') && (stream === null || useCase === stream),
  );
  const send = (sender: string) =>
    run(async () => {
      const ofSender = domains.find(({ domain }) =>
        sender.replace(/>\s*$/, '').trim().endsWith(`@${domain}`),
      );
      try {
        const { recipient } = await request<{ recipient: string }>('/console/test-messages', {
          method: 'POST',
          account: accountId,
          body: {
            stream: stream ?? ofSender?.useCase ?? 'mk',
            from: sender,
            templateId,
            ...(subject === undefined ? {} : { subject }),
            templateVariables: { ...variables, email: person.email },
          },
        });
        return t('test.sent', { address: recipient });
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const text = { RECIPIENT_SUPPRESSED: 'test.suppressed', RATE_LIMITED: 'test.limit' } as const;
        const own =
          error.code === 'RECIPIENT_SUPPRESSED' || error.code === 'RATE_LIMITED' ? text[error.code] : null;
        throw own === null ? error : new Error(t(own, { address: person.email }));
      }
    });
  return (
    <section aria-label={t('campaigns.test')}>
      {!isBare && <h2>{t('campaigns.test')}</h2>}
      <p class="small">{t('test.hint', { address: person.email })}</p>
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
          <div class="actions">
            <button class="button" type="submit" disabled={outcome?.running}>
              {t('test.send')}
            </button>
            <a class="button" href={href('messages', { recipient: person.email })}>
              {t('page.messages')}
            </a>
          </div>
        </form>
      )}
      <Outcome of={outcome} />
    </section>
  );
}
