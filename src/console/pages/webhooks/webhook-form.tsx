import { operate } from '../../api.ts';
import type { BodyOf, DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { Field } from '../../parts/field.tsx';
import { fieldChoice, fieldText, filledTexts } from '../../parts/field-text.ts';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

const PATH = '/web-setup/webhooks';

type Detail = DataOf<typeof PATH, 'post'>;
type Input = BodyOf<typeof PATH, 'post'>;

const EVENTS = [
  'email_sent',
  'email_delivered',
  'email_delayed',
  'email_bounced',
  'email_suppressed',
  'email_rejected',
  'email_failed',
  'email_complained',
  'email_opened',
  'email_clicked',
  'email_unsubscribed',
  'domain_verified',
  'domain_failing',
  'domain_failed',
  'domain_deleted',
  'campaign_paused',
  'sending_limited',
  'sending_resumed',
  'erasure_requested',
  'email_received',
  'source_address_blocked',
] as const satisfies Input['events'];

/** Names of products are the same in all languages. */
const FORMATS = {
  postrider: 'Postrider (Standard Webhooks)',
  postmark: 'Postmark',
  sendgrid: 'SendGrid',
  mailgun: 'Mailgun',
  resend: 'Resend',
  ses: 'Amazon SES',
} as const satisfies Record<NonNullable<Input['format']>, string>;
const FORMAT_NAMES = ['postrider', 'postmark', 'sendgrid', 'mailgun', 'resend', 'ses'] as const;

/** The name of the product whose webhooks the calls have the form of. */
export function formatName(format: Input['format']): string {
  return FORMATS[format ?? 'postrider'];
}

const STREAMS = ['transactional', 'marketing'] as const;

interface WebhookFormProps {
  /** Null: a new one. */
  webhook: Detail | null;
  onSaved: (webhook: Detail) => void;
}

/** The fields of a webhook. Values of headers are never shown: they are kept, replaced or removed together. */
export function WebhookForm({ webhook, onSaved }: WebhookFormProps) {
  const { t, named } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const save = (form: FormData) =>
    run(async () => {
      const body = { ...fieldsIn(form), ...headersIn(form) };
      onSaved(
        webhook === null
          ? await operate('post', PATH, { account: accountId, body })
          : await operate('patch', `${PATH}/{webhookId}`, {
              account: accountId,
              parameters: { webhookId: webhook.webhookId },
              body,
            }),
      );
      return '';
    });
  const filter = webhook?.filter;
  const storedHeaders = webhook?.headerNames ?? [];
  return (
    <form
      aria-label={t(webhook === null ? 'webhooks.add' : 'webhooks.edit')}
      onSubmit={(event) => {
        event.preventDefault();
        void save(new FormData(event.currentTarget));
      }}
    >
      <Field label={t('webhooks.url')}>
        {(control) => (
          <input
            {...control}
            class="input"
            name="url"
            type="url"
            required
            maxLength={2048}
            placeholder="https://"
            defaultValue={webhook?.url ?? ''}
          />
        )}
      </Field>
      <Field label={t('people.name')} isOptional={webhook === null}>
        {(control) => (
          <input
            {...control}
            class="input"
            name="name"
            maxLength={100}
            required={webhook !== null}
            defaultValue={webhook?.name ?? ''}
          />
        )}
      </Field>
      <Field label={t('webhooks.format')} hint={t('webhooks.format.hint')}>
        {(control) => (
          <select {...control} class="select" name="format">
            {FORMAT_NAMES.map((name) => (
              <option key={name} value={name} selected={name === (webhook?.format ?? 'postrider')}>
                {formatName(name)}
              </option>
            ))}
          </select>
        )}
      </Field>
      <fieldset class="group">
        <legend>{t('webhooks.events.choose')}</legend>
        {EVENTS.map((event) => (
          <label key={event} class="check">
            <input
              class="tick"
              type="checkbox"
              name="events"
              value={event}
              defaultChecked={webhook?.events.includes(event) === true}
            />{' '}
            {named('event', event)}
          </label>
        ))}
      </fieldset>
      <fieldset class="group">
        <legend>{t('webhooks.filter.choose')}</legend>
        {STREAMS.map((name) => (
          <label key={name} class="check">
            <input
              class="tick"
              type="checkbox"
              name="streams"
              value={name}
              defaultChecked={filter?.streams?.includes(name) === true}
            />{' '}
            {t(`webhooks.filter.${name}`)}
          </label>
        ))}
      </fieldset>
      <Field label={t('webhooks.filter.domains')} hint={t('webhooks.filter.lines')} isOptional>
        {(control) => (
          <textarea
            {...control}
            class="textarea"
            name="domains"
            autocapitalize="none"
            spellcheck={false}
            placeholder="example.com"
            defaultValue={filter?.domains?.join('\n') ?? ''}
          />
        )}
      </Field>
      <Field label={t('webhooks.filter.tags')} hint={t('webhooks.filter.lines')} isOptional>
        {(control) => (
          <textarea
            {...control}
            class="textarea"
            name="tags"
            autocapitalize="none"
            spellcheck={false}
            placeholder="welcome"
            defaultValue={filter?.tags?.join('\n') ?? ''}
          />
        )}
      </Field>
      <Field
        label={t('webhooks.headers')}
        hint={
          storedHeaders.length === 0
            ? t('webhooks.headers.hint')
            : t('webhooks.headers.stored', { names: storedHeaders.join(', ') })
        }
        isOptional
      >
        {(control) => (
          <textarea
            {...control}
            class="textarea"
            name="headers"
            autocapitalize="none"
            spellcheck={false}
            placeholder="Authorization: Bearer …"
          />
        )}
      </Field>
      {storedHeaders.length > 0 && (
        <label class="check">
          <input class="tick" type="checkbox" name="removesHeaders" /> {t('webhooks.headers.remove')}
        </label>
      )}
      <div class="actions">
        <Button
          type="submit"
          kind="primary"
          label={t(webhook === null ? 'webhooks.create' : 'me.save')}
          isBusy={outcome?.running === true}
        />
      </div>
      <Outcome of={outcome} />
    </form>
  );
}

function fieldsIn(form: FormData): Pick<Input, 'url' | 'name' | 'format' | 'events' | 'filter'> {
  const events = EVENTS.filter((event) => form.getAll('events').includes(event));
  return {
    url: fieldText(form, 'url'),
    ...filledTexts(form, 'name'),
    format: fieldChoice(form, 'format', FORMAT_NAMES) ?? 'postrider',
    events: events.length === 0 ? ['*'] : events,
    // Without lists it is none.
    filter: {
      streams: STREAMS.filter((stream) => form.getAll('streams').includes(stream)),
      domains: linesIn(form, 'domains'),
      tags: linesIn(form, 'tags'),
    },
  };
}

/** The headers, one on each line; without them those that are stored remain. */
function headersIn(form: FormData): Pick<Input, 'headers'> {
  const lines = linesIn(form, 'headers');
  if (lines.length === 0) return form.has('removesHeaders') ? { headers: null } : {};
  const headers = lines.map((line) => {
    // A line without a colon is a name without a value, which the server refuses.
    const [name = '', ...value] = line.split(':');
    return [name.trim(), value.join(':').trim()];
  });
  return { headers: Object.fromEntries(headers) };
}

function linesIn(form: FormData, name: string): string[] {
  return fieldText(form, name)
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}
