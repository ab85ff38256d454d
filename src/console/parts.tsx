import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api.ts';
import type { Data } from './data.ts';
import { curlArguments, quoted } from './parts/curl.ts';
import { fieldText } from './parts/field-text.ts';
import { useNavigation } from './routing.ts';
import { useMember } from './session.ts';
import { useTexts } from './texts.ts';

/** Whether the heading of the next page gets the focus: it does not exist while the page is loaded. */
let isFocusAwaited = false;

/** Moves the focus to the heading of the page in `main`, when there is one: screen readers read it. */
export function focusHeading(main: HTMLElement): void {
  const heading = main.querySelector('h1');
  isFocusAwaited = heading === null;
  heading?.focus();
}

/** A page: its title, the question that it answers, its content and its request with curl. */
export function Page(props: {
  title: string;
  question?: string;
  curl?: string;
  /** The file that the request sends. */
  curlBody?: CurlBody;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${props.title} · Postrider`;
  }, [props.title]);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (isFocusAwaited) heading.current?.focus();
    isFocusAwaited = false;
  }, []);
  return (
    <>
      <h1 tabIndex={-1} ref={heading}>
        {props.title}
      </h1>
      {props.question !== undefined && <p class="question">{props.question}</p>}
      {props.children}
      {props.curl !== undefined && <Curl path={props.curl} body={props.curlBody} />}
    </>
  );
}

/** The content of data, or that it is loading or failed. */
export function Loaded<T>(props: { data: Data<T>; children: (value: T) => ComponentChildren }) {
  const { t } = useTexts();
  const { value, error, reload } = props.data;
  if (error !== null && value === null) return <Failure error={error} retry={reload} />;
  if (value === null)
    return (
      <p class="loading" role="status">
        {t('app.loading')}
      </p>
    );
  return (
    <>
      {error !== null && <Failure error={error} retry={reload} />}
      {props.children(value)}
    </>
  );
}

/** An error: what happened, and what to do. Another attempt is offered only if it may succeed. */
export function Failure(props: { error: ApiError; retry?: () => void }) {
  const { t, errorText } = useTexts();
  const { location, href } = useNavigation();
  const { error, retry } = props;
  if (error.permission !== '') return <Denied permission={error.permission} />;
  const kind = kindOf(error);
  const [page = '', ...more] = location.segments;
  return (
    <div class="notice bad" role="alert">
      <strong>{t(HEADINGS[kind])}</strong>
      <p>{errorText(error)}</p>
      {kind === 'missing' && <p>{t('app.error.missing.hint')}</p>}
      {error.requestId !== '' && <p class="small">{t('app.error.request', { id: error.requestId })}</p>}
      {kind === 'temporary' && retry !== undefined && (
        <button type="button" onClick={retry}>
          {t('app.retry')}
        </button>
      )}
      {kind === 'missing' && more.length > 0 && <a href={href(page)}>{t('app.back')}</a>}
      {kind === 'invalid' && <a href={href(page)}>{t('app.error.invalid.reset')}</a>}
    </div>
  );
}

const HEADINGS = {
  missing: 'app.error.missing',
  denied: 'app.error.denied',
  invalid: 'app.error.invalid',
  temporary: 'app.error',
} as const;

function kindOf({ status }: ApiError): keyof typeof HEADINGS {
  if (status === 404) return 'missing';
  if (status === 403) return 'denied';
  return status === 400 ? 'invalid' : 'temporary';
}

/** States that the role of the person does not permit a page or a part of it, and which roles do. */
export function Denied({ permission }: { permission: string }) {
  const { t, named } = useTexts();
  const { person } = useMember();
  const roles = Object.keys(person.roles).filter((role) =>
    person.roles[role]?.some((each) => each === permission),
  );
  return (
    <div class="notice bad" role="alert">
      <strong>{t('app.error.denied')}</strong>
      <p>{t('app.error.denied.roles', { roles: roles.map((role) => named('role', role)).join(', ') })}</p>
    </div>
  );
}

/** An empty list: why, and the next step. */
export function Empty(props: { title: string; children?: ComponentChildren }) {
  return (
    <div class="notice">
      <strong>{props.title}</strong>
      {props.children}
    </div>
  );
}

const GOOD = ['delivered', 'SUCCESS', 'ok'];
const BAD = ['bounced', 'failed', 'complained', 'FAILED', 'missing', 'wrong', 'TEMPORARY_FAILURE'];

/** A status with a color and its name. `prefix`: of its text. */
export function Status(props: { name: string; prefix?: string }) {
  const { named } = useTexts();
  const { name, prefix = 'status' } = props;
  const kind = GOOD.includes(name) ? 'good' : BAD.includes(name) ? 'bad' : 'open';
  return <span class={`status ${kind}`}>{named(prefix, name)}</span>;
}

/** Copies a text to the clipboard. `label`: what is copied, for screen readers. */
export function Copy(props: { text: string; label?: string }) {
  const { t } = useTexts();
  const [copied, setCopied] = useState(false);
  return (
    <button
      type="button"
      class="copy"
      aria-label={copied ? t('app.copied') : (props.label ?? t('app.copy'))}
      onClick={() => void navigator.clipboard.writeText(props.text).then(() => setCopied(true))}
    >
      {t(copied ? 'app.copied' : 'app.copy')}
    </button>
  );
}

/** The request of a page as a command. `body`: the file that it sends. */
function Curl({ path, body }: { path: string; body?: CurlBody | undefined }) {
  const { accountId, person } = useMember();
  const lines = curlArguments({ apiUrl: person.apiUrl, path, accountId });
  if (body !== undefined)
    lines.push(`-H ${quoted(`Content-Type: ${body.type}`)} --data-binary ${quoted(`@${body.file}`)}`);
  return <Command text={`curl -fsS ${lines.join(' \\\n  ')}`} />;
}

/** A file that a request sends. */
interface CurlBody {
  type: string;
  file: string;
}

/** A shell command, and the key that it needs. */
export function Command({ text }: { text: string }) {
  const { t } = useTexts();
  return (
    <details class="curl">
      <summary>{t('app.curl')}</summary>
      <pre tabIndex={0}>{text}</pre>
      <Copy text={text} />
      <p class="small">{t(text.includes('$OPERATOR_KEY') ? 'app.curl.operatorKey' : 'app.curl.setupKey')}</p>
    </details>
  );
}

/** A table; on narrow screens each row is a card in which the heads are labels. */
export function Table(props: { label: string; heads: string[]; children: ComponentChildren }) {
  return (
    <section class="table" aria-label={props.label} tabIndex={0}>
      <table style={Object.fromEntries(props.heads.map((head, i) => [`--head-${i + 1}`, cssString(head)]))}>
        <thead>
          <tr>
            {props.heads.map((head) => (
              <th scope="col" key={head}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </section>
  );
}

/** A text as a CSS string. */
function cssString(text: string): string {
  return `"${text.replaceAll(/["\\\n]/g, (char) => `\\${char.charCodeAt(0).toString(16)} `)}"`;
}

/** A button that asks before it does something. `reason`: the label of a required field, whose text the action gets. */
export function Confirmed(props: {
  label: string;
  question: string;
  reason?: string;
  action: (reason: string) => Promise<void>;
}) {
  const { t } = useTexts();
  const dialog = useRef<HTMLDialogElement>(null);
  const close = () => dialog.current?.close();
  return (
    <>
      <button type="button" onClick={() => dialog.current?.showModal()}>
        {props.label}
      </button>
      <dialog ref={dialog} aria-label={props.label}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            close();
            void props.action(fieldText(new FormData(event.currentTarget), 'reason'));
          }}
        >
          <p>{props.question}</p>
          {props.reason !== undefined && (
            <label>
              {props.reason}
              <input name="reason" required maxLength={500} autocomplete="off" />
            </label>
          )}
          <div class="actions">
            <button type="submit" class="primary">
              {props.label}
            </button>
            <button type="button" onClick={close}>
              {t('app.cancel')}
            </button>
          </div>
        </form>
      </dialog>
    </>
  );
}

/** Runs an action; its result or error is shown by `Outcome`. */
export function useAction(first: ActionOutcome = null): {
  outcome: ActionOutcome;
  run: (action: () => Promise<string>) => Promise<void>;
} {
  const { errorText } = useTexts();
  const [outcome, setOutcome] = useState<ActionOutcome>(first);
  return {
    outcome,
    run: async (action) => {
      setOutcome({ text: '', running: true, failed: false });
      try {
        setOutcome({ text: await action(), running: false, failed: false });
      } catch (error) {
        const text =
          error instanceof ApiError ? errorText(error) : error instanceof Error ? error.message : '';
        setOutcome({ text, running: false, failed: true });
      }
    },
  };
}

type ActionOutcome = { text: string; running: boolean; failed: boolean } | null;

/** The result of the last action. */
export function Outcome(props: { of: ActionOutcome }) {
  const { t } = useTexts();
  const { of } = props;
  const text = of === null ? '' : of.running ? t('app.loading') : of.text || t('app.error.network');
  return (
    <p role="status" class={of?.failed ? 'outcome bad' : 'outcome'}>
      {text}
    </p>
  );
}
