import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiError, operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import type { BodyOf, DataOf } from '../../operations.ts';
import { Failure, Outcome, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { isSourceFault, SourceFaults } from '../source-faults.tsx';
import { MailFrame } from './mail-frame.tsx';
import { storeHtml } from './stored-html.ts';
import './preview.css';

const CONTACT = '/web-setup/contacts/{contactIdentifier}';
const PREVIEW = '/web-setup/templates/preview';

type Contact = DataOf<typeof CONTACT>['contact'];
type RenderedPreview = DataOf<typeof PREVIEW, 'post'>;
/** A preview with the id of its HTML: `/console/previews/{id}`. */
type StoredPreview = RenderedPreview & { id: string };
/** A preview with the values that it shows. */
type TemplatePreview = StoredPreview & Pick<RenderedMail, 'variables'>;

/** What a preview shows, for the parts of the page next to it. */
export interface RenderedMail {
  preview: RenderedPreview;
  /** Those of the contact, and names in place of missing ones. */
  variables: Record<string, unknown>;
}

/** What is shown: a template, or the content of a campaign. */
export interface PreviewedContent {
  subject: string;
  html: string;
  /** Null: derived from the html. */
  text: string | null;
  /** What the html is compiled from; null: the html is given. */
  mjml?: string | null;
  /** Default: simple. */
  syntax?: 'simple' | 'liquid';
  /** Address of the sender. */
  from?: string;
}

interface PreviewProps {
  content: PreviewedContent;
  page: string;
  keep?: Readonly<Record<string, string>>;
  /** What is shown below the preview, with the values of the preview: those of the contact, and names in place of missing ones. */
  children?: (variables: Record<string, unknown>) => ComponentChildren;
  /** Called with each new preview. */
  onRendered?: (rendered: RenderedMail) => void;
  /** Whether faults are shown next to the preview. Default: in it. */
  hasOwnFaults?: boolean;
  /** Called with the error of a new preview; null: there is none. */
  onError?: (error: ApiError | null) => void;
  /** Whether invalid lines of the source are named next to the preview. Default: in it. */
  hasOwnSourceFaults?: boolean;
}

const VIEWS = ['desktop', 'phone', 'text'] as const;
const DELAY_MS = 400;
/** Gmail hides the end of messages above it. */
export const GMAIL_BYTES = 102_000;
/** Above it, the person is warned. */
const CLIPPED_BYTES = 100_000;
/**
 * Lets content that does not declare a color scheme follow that of the frame; its own declaration comes first. Browsers
 * display it on white otherwise. They accept it behind the end of the document.
 */
const FOLLOWS_FRAME = '<meta name="color-scheme" content="light dark">';

/**
 * Content as a contact would see it, in a frame that runs no scripts and loads nothing from elsewhere. View and contact
 * are in the address: `page`, with the query parameters in `keep`.
 */
export function Preview({
  content,
  page,
  keep = {},
  children,
  onRendered,
  hasOwnFaults = false,
  onError,
  hasOwnSourceFaults = false,
}: PreviewProps) {
  const { t, size } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId } = useMember();
  const { view: chosenView, dark, contact: contactId } = location.query;
  const view = VIEWS.find((name) => name === chosenView) ?? 'desktop';
  const isDark = dark !== undefined;
  const found = useOperation(contactId === undefined ? null : CONTACT, {
    contactIdentifier: contactId ?? '',
  });
  const contact = found.value?.contact ?? null;
  const [values, setValues] = useState<Record<string, string>>({});
  const [asked, setAsked] = useState<readonly string[]>([]);
  const [preview, setPreview] = useState<TemplatePreview | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const { subject, html, text, from, mjml = null, syntax = 'simple' } = content;
  const body = {
    subject,
    ...(mjml === null ? { html } : { mjml }),
    text,
    syntax,
    from: from ?? null,
    contactIdentifier: contact?.contactIdentifier ?? null,
    templateVariables: nested(values),
  };
  useEffect(() => {
    const abort = new AbortController();
    const timer = window.setTimeout(() => {
      createPreview(body, isDark, accountId, abort.signal).then(
        (created) => {
          const variables = variablesOf(contact, created.missing, values);
          setPreview({ ...created, variables });
          onRendered?.({ preview: created, variables });
          setError(null);
          onError?.(null);
          // A field remains when its variable has a value.
          setAsked((last) =>
            [...last, ...created.missing.filter((name) => !last.includes(name))].slice(0, 100),
          );
        },
        (failure: unknown) => {
          if (abort.signal.aborted) return;
          if (!(failure instanceof ApiError)) throw failure;
          setError(failure);
          onError?.(failure);
        },
      );
    }, DELAY_MS);
    return () => {
      window.clearTimeout(timer);
      abort.abort();
    };
  }, [JSON.stringify(body), isDark, accountId]);

  const change = (query: Record<string, string | undefined>) =>
    go(href(page, { ...keep, view: chosenView, dark, contact: contactId, ...query }), { replace: true });
  return (
    <section class="preview" aria-label={t('preview.title')}>
      <h2>{t('preview.title')}</h2>
      <div class="views">
        <fieldset class="segments">
          <legend class="unseen">{t('preview.view')}</legend>
          {VIEWS.map((name) => (
            <label class="segment" key={name}>
              <input
                class="segment-input"
                type="radio"
                name="view"
                checked={name === view}
                onChange={() => change({ view: name === 'desktop' ? undefined : name })}
              />
              {t(`preview.view.${name}`)}
            </label>
          ))}
        </fieldset>
        <label class="check">
          <input
            class="tick"
            type="checkbox"
            checked={isDark}
            onChange={({ currentTarget: { checked } }) => change({ dark: checked ? '1' : undefined })}
          />
          {t('preview.dark')}
        </label>
      </div>
      <ContactChoice contact={contact} onChoice={(id) => change({ contact: id })} />
      {found.error !== null && <Failure error={found.error} retry={found.reload} />}
      {error !== null && !isSourceFault(error) && <Failure error={error} />}
      {!hasOwnSourceFaults && <SourceFaults error={error} format={mjml === null ? 'html' : 'mjml'} />}
      {preview === null && error === null && (
        <p class="loading" role="status">
          {t('app.loading')}
        </p>
      )}
      {preview !== null && (
        <>
          {!hasOwnFaults && <Faults preview={preview} />}
          <Values names={asked} values={values} onChange={setValues} />
          {!hasOwnFaults && (
            <p>
              <strong>{t('messages.subject')}:</strong> {preview.subject || '–'}
            </p>
          )}
          {view === 'text' ? (
            <pre tabIndex={0}>{preview.text}</pre>
          ) : (
            <MailFrame
              id={preview.id}
              title={t('preview.frame')}
              html={preview.html}
              view={view}
              isDark={isDark}
            />
          )}
          <p class="small">{t('preview.size', { size: size(preview.bytes) })}</p>
          {preview.bytes > CLIPPED_BYTES && !hasOwnFaults && (
            <p class="notice bad">{t('preview.clipped', { limit: size(GMAIL_BYTES) })}</p>
          )}
          {children?.(preview.variables)}
        </>
      )}
    </section>
  );
}

/** Renders the content, then stores its HTML as a separate document, which has another policy than this page. */
async function createPreview(
  body: BodyOf<typeof PREVIEW, 'post'>,
  isDark: boolean,
  account: string,
  signal: AbortSignal,
): Promise<StoredPreview> {
  const rendered = await operate('post', PREVIEW, { account, body, signal });
  const { html } = rendered;
  const id = await storeHtml(isDark ? html + FOLLOWS_FRAME : html, account, signal);
  return { ...rendered, id };
}

/** What prevents the content from being sent, or probably is a mistake. */
function Faults({ preview: { missing, required, leftovers } }: { preview: RenderedPreview }) {
  const { t } = useTexts();
  const braces = (names: readonly string[]) => names.map((name) => `{{${name}}}`).join(' ');
  const faults = [
    ...(required.length > 0 ? [t('preview.required', { names: braces(required) })] : []),
    ...(missing.length > 0 ? [t('preview.missing', { names: braces(missing) })] : []),
    ...(leftovers.length > 0 ? [t('preview.leftovers', { names: leftovers.join(' ') })] : []),
  ];
  if (faults.length === 0) return <p role="status">{t('preview.complete')}</p>;
  return (
    <div class="notice bad" role="status">
      {faults.map((fault) => (
        <p key={fault}>{fault}</p>
      ))}
    </div>
  );
}

interface ValuesProps {
  names: readonly string[];
  values: Record<string, string>;
  onChange: (values: Record<string, string>) => void;
}

function Values({ names, values, onChange }: ValuesProps) {
  const { t } = useTexts();
  const own = names.filter((name) => !name.startsWith('company_address'));
  if (own.length === 0) return null;
  return (
    <details>
      <summary>{t('preview.values')}</summary>
      <div class="search">
        {own.map((name) => (
          <label class="field" key={name}>
            {name}
            <input
              class="input"
              value={values[name] ?? ''}
              maxLength={1000}
              autocomplete="off"
              onInput={({ currentTarget: { value } }) => onChange({ ...values, [name]: value })}
            />
          </label>
        ))}
      </div>
    </details>
  );
}

interface ContactChoiceProps {
  contact: Contact | null;
  onChoice: (identifier: string | undefined) => void;
}

/** Finds the contact whose values the preview uses. */
function ContactChoice({ contact, onChoice }: ContactChoiceProps) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const find = (search: string) =>
    run(async () => {
      const { contacts } = await operate('get', '/web-setup/contacts', {
        account: accountId,
        parameters: { search, limit: 1 },
      });
      const [first] = contacts;
      if (first === undefined) throw new Error(t('preview.contact.none'));
      onChoice(first.contactIdentifier);
      return t('preview.contact.as', { contact: first.email ?? first.contactIdentifier });
    });
  return (
    <>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          const search = new FormData(event.currentTarget).get('search');
          if (typeof search === 'string') void find(search.trim());
        }}
      >
        <label class="field">
          {t('preview.contact')}
          <input
            class="input"
            name="search"
            type="search"
            required
            maxLength={320}
            autocomplete="off"
            defaultValue={contact?.email ?? ''}
            key={contact?.email ?? ''}
          />
        </label>
        <div class="actions">
          <button class="button" type="submit">
            {t('preview.contact.find')}
          </button>
          {contact !== null && (
            <button class="button" type="button" onClick={() => onChoice(undefined)}>
              {t('preview.contact.nobody')}
            </button>
          )}
        </div>
      </form>
      <Outcome of={outcome} />
    </>
  );
}

/** The values of the preview: a variable without one has its name in brackets. */
function variablesOf(
  contact: Contact | null,
  missing: readonly string[],
  values: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const names = Object.fromEntries(missing.map((name) => [name, `[${name}]`]));
  const entered = nested({ ...names, ...values });
  if (contact === null) return entered;
  const { firstName, lastName, phone, customFields } = contact;
  const ofContact = { firstName: firstName ?? '', lastName: lastName ?? '', phone: phone ?? '' };
  return { ...entered, ...ofContact, customFields: { ...Object(entered['customFields']), ...customFields } };
}

/** Values by path, such as `order.number`, as objects. Empty values are left out. */
function nested(values: Readonly<Record<string, string>>): Record<string, unknown> {
  const root = new Map<string, unknown>();
  for (const [path, value] of Object.entries(values)) {
    if (value === '') continue;
    const steps = path.split('.');
    const last = steps.pop() ?? '';
    let object = root;
    for (const step of steps) {
      const next = object.get(step);
      const child = next instanceof Map ? (next as Map<string, unknown>) : new Map<string, unknown>();
      object.set(step, child);
      object = child;
    }
    object.set(last, value);
  }
  return objectOf(root);
}

function objectOf(map: ReadonlyMap<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    [...map].map(([name, value]) => [
      name,
      // Sound: `nested` stores maps of this type only.
      value instanceof Map ? objectOf(value as Map<string, unknown>) : value,
    ]),
  );
}
