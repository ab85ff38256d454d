import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { Button } from '../../parts/button.tsx';
import { fieldText } from '../../parts/field-text.ts';
import { SenderField } from '../../parts/sender-field.tsx';
import { Loaded, Outcome, Status, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { CheckedDomain } from './domain.tsx';

interface FirstMessageProps {
  domain: CheckedDomain;
  /** The address of the check. */
  check: string;
}

/** The last step: a message from the domain, and what becomes of it. Its id is in the address (`message`). */
export function FirstMessage({ domain, check }: FirstMessageProps) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const sent = location.query['message'];
  if (domain.status !== 'SUCCESS' && domain.status !== 'TEMPORARY_FAILURE')
    return (
      <div class="notice">
        <p>{t('domains.message.notYet')}</p>
        <a class="button primary" href={check}>
          {t('domains.step.check')}
        </a>
      </div>
    );
  if (domain.useCase === 'mk')
    return (
      <div class="notice">
        <p>{t('domains.message.marketing')}</p>
        <div class="actions">
          <a class="button" href={href('contacts')}>
            {t('page.contacts')}
          </a>
          <a class="button" href={href('groups')}>
            {t('page.groups')}
          </a>
          <a class="button" href={href('campaigns')}>
            {t('page.campaigns')}
          </a>
        </div>
      </div>
    );
  return (
    <>
      {may('sendTransactional') ? <Form domain={domain} /> : <p class="notice">{t('messages.notAllowed')}</p>}
      {sent !== undefined && <SentMessage messageId={sent} />}
    </>
  );
}

function Form({ domain: { domain, domainId } }: { domain: CheckedDomain }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, person } = useMember();
  const { outcome, run } = useAction();
  const send = (form: FormData) =>
    run(async () => {
      const { messageId } = await operate('post', '/transactional/send', {
        account: accountId,
        body: {
          from: fieldText(form, 'from'),
          to: fieldText(form, 'to'),
          subject: fieldText(form, 'subject'),
          html: htmlOf(fieldText(form, 'text')),
        },
      });
      go(href(`domains/${encodeURIComponent(domainId)}`, { step: 'message', message: messageId }));
      return t('domains.message.accepted');
    });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void send(new FormData(event.currentTarget));
      }}
    >
      <div class="search">
        <SenderField value={`hello@${domain}`} hint={t('campaigns.fromHint', { domains: domain })} />
        <label class="field">
          {t('campaigns.test.to')}
          <input class="input" name="to" type="email" required maxLength={320} defaultValue={person.email} />
        </label>
        <label class="field">
          {t('messages.subject')}
          <input
            class="input"
            name="subject"
            required
            maxLength={998}
            defaultValue={t('domains.message.subject')}
          />
        </label>
      </div>
      <label class="field">
        {t('domains.message.text')}
        <textarea
          class="textarea"
          name="text"
          required
          maxLength={10_000}
          defaultValue={t('domains.message.body')}
        />
      </label>
      <p class="small">{t('domains.message.footer')}</p>
      <div class="actions">
        <Button
          type="submit"
          kind="primary"
          label={t('domains.message.send')}
          isBusy={outcome?.running === true}
        />
      </div>
      <Outcome of={outcome} />
    </form>
  );
}

/** Text as HTML, with the footer. Braces are written as entities, so that they are no variables. */
function htmlOf(text: string): string {
  const escaped = text.replace(/[&<>"{}]/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<p>${escaped.replaceAll(/\r?\n/g, '<br>')}</p><p>{{company_address_html}} {{unsubscribe_email_html}}</p>`;
}

/** The state of the message, read again after its events. */
function SentMessage({ messageId }: { messageId: string }) {
  const { t, time } = useTexts();
  const { href } = useNavigation();
  const message = useOperation('/web-setup/messages/{id}', { id: messageId });
  return (
    <Loaded data={message}>
      {({ recipient, status, createdAt, nextAttemptAt }) => (
        <section class="notice" aria-label={t('domains.message.state')}>
          <p>
            {recipient} · {time(createdAt)} · <Status name={status} />
          </p>
          {nextAttemptAt !== undefined && nextAttemptAt !== null && (
            <p>
              {t('messages.next')}: {time(nextAttemptAt)}
            </p>
          )}
          <a href={href(`messages/${encodeURIComponent(messageId)}`)}>{t('messages.details')}</a>
        </section>
      )}
    </Loaded>
  );
}
