import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api.ts';
import type { Data } from './data.ts';
import { curlArguments, quoted } from './parts/curl.ts';
import { Drawer } from './parts/drawer.tsx';
import { fieldText } from './parts/field-text.ts';
import { Icon } from './parts/icon/icon.tsx';
import type { IconName } from './parts/icon/icon-names.ts';
import { RowMenu } from './parts/row-menu.tsx';
import { useNavigation } from './routing.ts';
import { useMember } from './session.ts';
import { usePageTitle } from './shell/crumbs.tsx';
import { useTexts } from './texts.ts';
import './parts/button.css';
import './parts/chip.css';
import './parts/dialog.css';
import './parts/facts.css';
import './parts/filter-bar.css';
import './parts/form.css';
import './parts/notice.css';
import './parts/page-head.css';
import './parts/table.css';

/** Whether the heading of the next page gets the focus: it does not exist while the page is loaded. */
let isFocusAwaited = false;

/** Moves the focus to the heading of the page in `main`, when there is one: screen readers read it. */
export function focusHeading(main: HTMLElement): void {
  const heading = main.querySelector('h1');
  isFocusAwaited = heading === null;
  heading?.focus();
}

/** Moves the focus to the heading of the page that is shown next, after an action that replaces the page. */
export function focusNextHeading(): void {
  isFocusAwaited = true;
}

interface PageProps {
  title: string;
  /** The state of what the page is about, next to its title. */
  chip?: ComponentChildren;
  /** What the page is for, in a few words. */
  question?: string | undefined;
  /** The buttons of the page, next to its title: at most one is primary. */
  actions?: ComponentChildren;
  curl?: string;
  /** The file that the request sends. */
  curlBody?: CurlBody;
  children: ComponentChildren;
}

/** A page: its title with its state and actions, its content, and its request with curl. */
export function Page({ title, chip, question, actions, curl, curlBody, children }: PageProps) {
  usePageTitle(title);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (isFocusAwaited) heading.current?.focus();
    isFocusAwaited = false;
  }, []);
  return (
    <>
      <div class="page-head">
        <div class="titles">
          <div class="title">
            <h1 tabIndex={-1} ref={heading}>
              {title}
            </h1>
            {chip}
          </div>
          {question !== undefined && <p class="question">{question}</p>}
        </div>
        {(actions !== undefined || curl !== undefined) && (
          <div class="actions">
            {actions}
            {curl !== undefined && <Curl path={curl} body={curlBody} />}
          </div>
        )}
      </div>
      {children}
    </>
  );
}

/** A surface with a title for a part of a page. `action`: next to the title, such as a link to the whole list. */
export function Card(props: { title: string; action?: ComponentChildren; children: ComponentChildren }) {
  return (
    <div class="card">
      <div class="card-head">
        <h2>{props.title}</h2>
        {props.action}
      </div>
      {props.children}
    </div>
  );
}

interface LoadedProps<T> {
  data: Data<T>;
  /** Whether it is a list: its rows remain, paler, until those of other filters are there. */
  isList?: boolean;
  /** `isStale`: it is the list of other filters, which remains for a moment. */
  children: (value: T, isStale: boolean) => ComponentChildren;
}

/** The content of data, or that it is loading or failed. */
export function Loaded<T>({ data, isList = false, children }: LoadedProps<T>) {
  const { value, error, reload } = data;
  const last = useRef<T | null>(null);
  useEffect(() => {
    if (value !== null || error !== null) last.current = value;
  }, [value, error]);
  if (error !== null && value === null) return <Failure error={error} retry={reload} />;
  const shown = value ?? (isList ? last.current : null);
  if (shown === null) return <Skeleton />;
  return (
    <>
      {error !== null && <Failure error={error} retry={reload} />}
      {isList ? (
        <div class={value === null ? 'rows stale' : 'rows'} inert={value === null} aria-busy={value === null}>
          {children(shown, value === null)}
        </div>
      ) : (
        children(shown, false)
      )}
    </>
  );
}

/** Rows in place of data that is not there yet. */
export function Skeleton({ rows = SKELETON_ROWS }: { rows?: number }) {
  const { t } = useTexts();
  return (
    <div class="loading skeleton" role="status">
      <span class="unseen">{t('app.loading')}</span>
      {Array.from({ length: rows }, (_, index) => (
        <span class="skeleton-row" key={index} />
      ))}
    </div>
  );
}

const SKELETON_ROWS = 6;

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
      <strong>
        <Icon name="circle-x" />
        {t(HEADINGS[kind])}
      </strong>
      <p>{errorText(error)}</p>
      {kind === 'missing' && <p>{t('app.error.missing.hint')}</p>}
      {error.requestId !== '' && <p class="small">{t('app.error.request', { id: error.requestId })}</p>}
      {kind === 'temporary' && retry !== undefined && (
        <button class="button" type="button" onClick={retry}>
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
      <strong>
        <Icon name="ban" />
        {t('app.error.denied')}
      </strong>
      <p>{t('app.error.denied.roles', { roles: roles.map((role) => named('role', role)).join(', ') })}</p>
    </div>
  );
}

/** An empty list: why, and the next step. */
export function Empty(props: { title: string; icon?: IconName; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <span class="round">
        <Icon name={props.icon ?? 'inbox'} />
      </span>
      <strong>{props.title}</strong>
      {props.children}
    </div>
  );
}

/** A statement that needs attention. */
export function Notice(props: { kind?: ChipKind; title: string; children?: ComponentChildren }) {
  const { kind = 'info' } = props;
  return (
    <div class={`notice ${kind}`}>
      <strong>
        <Icon name={STATE_ICONS[kind]} />
        {props.title}
      </strong>
      {props.children}
    </div>
  );
}

/** What a state means: good, not yet, bad, in progress, or nothing. */
export type ChipKind = 'ok' | 'warn' | 'bad' | 'info' | 'idle';

/** The icon of each kind of state. */
export const STATE_ICONS = {
  ok: 'circle-check',
  warn: 'triangle-alert',
  bad: 'circle-x',
  info: 'info',
  idle: 'clock',
} as const satisfies Record<ChipKind, IconName>;

/** What each status means, on every page. Others are neither good nor bad. */
const KINDS: Readonly<Record<string, ChipKind>> = {
  delivered: 'ok',
  sent: 'ok',
  verified: 'ok',
  active: 'ok',
  accepted: 'ok',
  completed: 'ok',
  succeeded: 'ok',
  done: 'ok',
  ok: 'ok',
  good: 'ok',
  SUCCESS: 'ok',
  deferred: 'warn',
  paused: 'warn',
  warning: 'warn',
  PENDING: 'warn',
  TEMPORARY_FAILURE: 'warn',
  bounced: 'bad',
  failed: 'bad',
  failing: 'bad',
  failure: 'bad',
  denied: 'bad',
  unsubscribed: 'warn',
  complained: 'bad',
  missing: 'bad',
  wrong: 'bad',
  bad: 'bad',
  FAILED: 'bad',
  sending: 'info',
  scheduled: 'info',
  running: 'info',
  waiting: 'info',
  pending: 'info',
  queued: 'info',
};

/** What a status means. */
export function kindOfStatus(name: string): ChipKind {
  return Object.hasOwn(KINDS, name) ? (KINDS[name] ?? 'idle') : 'idle';
}

/** A status with a color and its name. `prefix`: of its text. */
export function Status(props: { name: string; prefix?: string }) {
  const { named } = useTexts();
  const { name, prefix = 'status' } = props;
  return <Chip kind={kindOfStatus(name)}>{named(prefix, name)}</Chip>;
}

/** A state in a few words. */
export function Chip(props: { kind: ChipKind; children: ComponentChildren }) {
  return (
    <span class={`status chip ${props.kind}`}>
      <span>{props.children}</span>
    </span>
  );
}

/** Copies a text to the clipboard. `label`: what is copied, for screen readers. */
export function Copy(props: { text: string; label?: string }) {
  const { t } = useTexts();
  const [copied, setCopied] = useState(false);
  return (
    <button
      type="button"
      class="button copy icon-only ghost"
      aria-label={copied ? t('app.copied') : (props.label ?? t('app.copy'))}
      title={t(copied ? 'app.copied' : 'app.copy')}
      onClick={() => void navigator.clipboard.writeText(props.text).then(() => setCopied(true))}
    >
      <Icon name={copied ? 'check' : 'copy'} />
    </button>
  );
}

/** The request of a page as a command, in a drawer. `body`: the file that it sends. */
function Curl({ path, body }: { path: string; body?: CurlBody | undefined }) {
  const { t } = useTexts();
  const { accountId, person } = useMember();
  const lines = curlArguments({ apiUrl: person.apiUrl, path, accountId });
  if (body !== undefined)
    lines.push(`-H ${quoted(`Content-Type: ${body.type}`)} --data-binary ${quoted(`@${body.file}`)}`);
  const text = `curl -fsS ${lines.join(' \\\n  ')}`;
  return (
    <Drawer
      title={t('app.curl')}
      buttonClass="button icon-only screen"
      drawerClass="curl"
      button={<Icon name="code" />}
      isKept
    >
      {() => <CommandText text={text} />}
    </Drawer>
  );
}

/** A file that a request sends. */
interface CurlBody {
  type: string;
  file: string;
}

/** A shell command, and the key that it needs, folded. */
export function Command({ text }: { text: string }) {
  const { t } = useTexts();
  return (
    <details class="curl">
      <summary>{t('app.curl')}</summary>
      <CommandText text={text} />
    </details>
  );
}

function CommandText({ text }: { text: string }) {
  const { t } = useTexts();
  return (
    <>
      <pre tabIndex={0}>{text}</pre>
      <Copy text={text} />
      <p class="small">{t(text.includes('$OPERATOR_KEY') ? 'app.curl.operatorKey' : 'app.curl.setupKey')}</p>
    </>
  );
}

/** A column of a table; numbers and times are at its `end`, as are buttons, whose head is `unseen`: for screen readers. */
export type Column = string | { text: string; end?: true; unseen?: true; pick?: AllPicked };

/** The checkbox in a head that chooses all rows. */
interface AllPicked {
  isChecked: boolean;
  onChange: (isChecked: boolean) => void;
}

interface TableProps {
  label: string;
  heads: readonly Column[];
  /**
   * On narrow screens each row has two lines: the cell that names it and the one of the class `aside`; `second` and `when`.
   * Other cells are not shown there, but for `pick` in front and `menu` at the end.
   */
  isList?: boolean;
  children: ComponentChildren;
}

/** A table; on narrow screens each row is a card in which the heads are labels, or an item of a list. */
export function Table({ label, heads: columns, isList = false, children }: TableProps) {
  const heads = columns.map((column) => (typeof column === 'string' ? { text: column } : column));
  const ends = heads.flatMap(({ end, unseen }, index) => (end || unseen ? [index + 1] : []));
  return (
    <section
      class={isList ? 'table list' : 'table'}
      aria-label={label}
      tabIndex={0}
      data-end={ends.join(' ')}
    >
      <table style={Object.fromEntries(heads.map(({ text }, i) => [`--head-${i + 1}`, cssString(text)]))}>
        <thead>
          <tr>
            {heads.map(({ text, unseen, pick }) => (
              <th scope="col" key={text} class={pick === undefined ? undefined : 'pick'}>
                {pick !== undefined ? (
                  <input
                    class="tick"
                    type="checkbox"
                    aria-label={text}
                    checked={pick.isChecked}
                    onChange={({ currentTarget }) => pick.onChange(currentTarget.checked)}
                  />
                ) : unseen ? (
                  <span class="unseen">{text}</span>
                ) : (
                  text
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

/** A text as a CSS string. */
function cssString(text: string): string {
  return `"${text.replaceAll(/["\\\n]/g, (char) => `\\${char.charCodeAt(0).toString(16)} `)}"`;
}

interface ConfirmedProps {
  label: string;
  question: string;
  /** The label of a required field, whose text the action gets. */
  reason?: string;
  /** Whether it removes something. */
  isDanger?: boolean;
  /** Whether its button is the primary one of the page. */
  isPrimary?: boolean;
  /** What is asked about, below the question. */
  details?: ComponentChildren;
  action: (reason: string) => Promise<void>;
}

/** A button that asks before it does something. */
export function Confirmed(props: ConfirmedProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <button
        type="button"
        class={`button ${props.isDanger ? 'danger' : props.isPrimary ? 'primary' : ''}`}
        onClick={() => dialog.current?.showModal()}
      >
        {props.label}
      </button>
      <Question {...props} dialog={dialog} />
    </>
  );
}

/** An action of a row. Without a question it can be undone. */
type RowAction = Omit<ConfirmedProps, 'question'> & { question?: string };

/** Rare and destructive actions of a row or a page, in a menu; each asks before it does something. `label`: of the row. */
export function RowActions({ label, actions }: { label: string; actions: readonly RowAction[] }) {
  const [asked, setAsked] = useState<ConfirmedProps | null>(null);
  const dialog = useRef<HTMLDialogElement>(null);
  // The menu is closed when the dialog opens: the dialog is not within it.
  useEffect(() => {
    if (asked !== null) dialog.current?.showModal();
  }, [asked]);
  return (
    <>
      <RowMenu label={label}>
        {(close) =>
          actions.map((each) => (
            <button
              key={each.label}
              type="button"
              class={each.isDanger ? 'menu-item danger' : 'menu-item'}
              onClick={() => {
                close();
                const { question } = each;
                if (question === undefined) void each.action('');
                else setAsked({ ...each, question });
              }}
            >
              {each.label}
            </button>
          ))
        }
      </RowMenu>
      {asked !== null && <Question {...asked} dialog={dialog} onClose={() => setAsked(null)} />}
    </>
  );
}

interface QuestionProps extends ConfirmedProps {
  dialog: RefObject<HTMLDialogElement>;
  onClose?: () => void;
}

function Question({ label, question, reason, isDanger, details, action, dialog, onClose }: QuestionProps) {
  const { t } = useTexts();
  const close = () => dialog.current?.close();
  return (
    <dialog class="dialog" ref={dialog} aria-label={label} {...(onClose === undefined ? {} : { onClose })}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const given = fieldText(new FormData(event.currentTarget), 'reason');
          close();
          void action(given);
        }}
      >
        <h2>{label}</h2>
        <p>{question}</p>
        {details}
        {reason !== undefined && (
          <label class="field">
            {reason}
            <input class="input" name="reason" required maxLength={500} autocomplete="off" />
          </label>
        )}
        <div class="actions">
          <button type="submit" class={isDanger ? 'button danger' : 'button primary'}>
            {label}
          </button>
          <button class="button" type="button" onClick={close}>
            {t('app.cancel')}
          </button>
        </div>
      </form>
    </dialog>
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

/** The result of the last action; nothing after a success whose effect the page shows, with the text ''. */
export function Outcome(props: { of: ActionOutcome }) {
  const { t } = useTexts();
  const { of } = props;
  const text = of?.running ? t('app.loading') : of?.failed ? of.text || t('app.error.network') : of?.text;
  return (
    <p role="status" class={of?.failed ? 'outcome bad' : 'outcome'}>
      {text}
    </p>
  );
}
