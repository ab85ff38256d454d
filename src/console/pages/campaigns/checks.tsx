import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { AudienceResponse } from '../../../http/console/figure-routes.ts';
import { ApiError, operate } from '../../api.ts';
import type { Data } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { GMAIL_BYTES, type RenderedMail } from '../../parts/preview/preview.tsx';
import { Card, type ChipKind, Failure, STATE_ICONS } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { type Texts, useTexts } from '../../texts.ts';
import { hasAudience } from './audience.tsx';
import type { Choices } from './draft-saver.ts';
import { marketingDomain, senderAddress } from './sender.ts';
import { contentOf, testFaults, variantNames } from './variants.ts';

interface Entry {
  kind: ChipKind;
  text: string;
  /** Where it is mended. */
  link?: { address: string; name: string };
  /** Of a spam filter. */
  rules?: NonNullable<ContentCheck['rules']>;
}

interface ChecksProps {
  choices: Choices;
  /** The variant that `rendered` is of, from 0. */
  variant: number;
  rendered: RenderedMail | null;
  /** When its template was last changed; undefined while that is not known. */
  changedAt: string | undefined;
  domains: readonly DataOf<'/web-setup/domains'>['domains'][number][];
  audience: Data<AudienceResponse>;
  /** The address of a step of the composer. */
  step: (name: 'audience' | 'content') => string;
}

/** What would go wrong, what probably is a mistake, and what to do about it; the problems first. */
export function Checks({ choices, variant, rendered, changedAt, domains, audience, step }: ChecksProps) {
  const texts = useTexts();
  const { t } = texts;
  const { href } = useNavigation();
  const { from = '', scheduledAt } = choices;
  const content = contentOf(choices, variant);
  const { templateId } = content;
  const names = variantNames(choices);
  const requested = useChecksOnRequest({ ...content, from }, rendered === null ? undefined : changedAt);
  const template =
    templateId === undefined
      ? { address: step('content'), name: t('campaigns.step.content') }
      : { address: href(`templates/${encodeURIComponent(templateId)}`), name: t('campaigns.editTemplate') };
  const entries: Entry[] = [
    ofAudience(choices, audience, step('audience'), texts),
    ofSender(from, domains, { content: step('content'), domains: href('domains') }, texts),
    ...(scheduledAt !== undefined && Date.parse(scheduledAt) < Date.now()
      ? [{ kind: 'bad' as const, text: t('check.past') }]
      : []),
    ...ofTest(choices, step('content'), texts),
    ...(templateId === undefined
      ? [{ kind: 'bad' as const, text: t('check.noTemplate'), link: template }]
      : []),
    ...[...(rendered?.preview.checks ?? []), ...(requested.checks ?? [])].map((each) =>
      ofContent(each, template, step('content'), texts),
    ),
  ];
  const isProblem = ({ kind }: Entry) => kind !== 'ok';
  const problems = entries.filter(isProblem);
  const isReading =
    (rendered === null && templateId !== undefined) ||
    (hasAudience(choices) && audience.value === null && audience.error === null);
  const isRequesting = templateId !== undefined && requested.checks === null && requested.error === null;
  return (
    <Card
      title={
        names.length === 0
          ? t('campaigns.checks')
          : t('campaigns.variants.checks', { name: names[variant] ?? '' })
      }
      action={
        <span role="status" class="small">
          {isReading
            ? t('app.loading')
            : isRequesting
              ? t('check.opening')
              : problems.length === 0
                ? t('campaigns.checks.ok')
                : texts.plural('campaigns.checks.problems', problems.length)}
        </span>
      }
    >
      <ul class="checks">
        {[...problems.toSorted(badFirst), ...entries.filter((entry) => !isProblem(entry))].map((entry) => (
          <Check key={entry.text} kind={entry.kind}>
            {entry.text}
            {entry.link !== undefined && entry.kind !== 'ok' && (
              <>
                {' '}
                <a href={entry.link.address}>{entry.link.name}</a>
              </>
            )}
            {entry.rules !== undefined && entry.rules.length > 0 && <Rules rules={entry.rules} />}
          </Check>
        ))}
      </ul>
      {requested.error !== null && <Failure error={requested.error} />}
      {templateId !== undefined && (
        <div class="card-body actions">
          <Button label={t('system.checks.again')} isBusy={isRequesting} onClick={requested.again} />
        </div>
      )}
    </Card>
  );
}

function Rules({ rules }: Required<Pick<Entry, 'rules'>>) {
  const { t, number } = useTexts();
  return (
    <details>
      <summary>{t('check.spamRules')}</summary>
      {rules.map(({ name, points, description }) => (
        <p class="small" key={name}>
          {number(points)} {name} {description}
        </p>
      ))}
    </details>
  );
}

/** The checks that the server makes on request only. */
const ON_REQUEST: ReadonlySet<string> = new Set([
  'linksGone',
  'linksUnreachable',
  'linksSkipped',
  'linksUnopened',
  'imagesGone',
  'imagesUnreachable',
  'imagesLarge',
  'spamassassin',
  'rspamd',
  'spamUnavailable',
]);

/**
 * What the checks on request show; null: it is not known yet. They run once for each content, for whichever contact it is shown.
 * `changedAt`: when the template was last changed; undefined: they wait.
 */
function useChecksOnRequest(
  { templateId, subject, from }: Pick<Choices, 'templateId' | 'subject' | 'from'>,
  changedAt: string | undefined,
) {
  const { accountId } = useMember();
  const [checks, setChecks] = useState<ContentCheck[] | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    setChecks(null);
    setError(null);
    if (templateId === undefined || changedAt === undefined) return undefined;
    const abort = new AbortController();
    const body = {
      templateId,
      subject: subject ?? null,
      from: senderAddress(from ?? ''),
      checkLinks: true,
      checkSpam: true,
    };
    operate('post', '/web-setup/templates/preview', { account: accountId, body, signal: abort.signal }).then(
      (preview) => setChecks(preview.checks.filter(({ id }) => ON_REQUEST.has(id))),
      (failure: unknown) => {
        if (abort.signal.aborted) return;
        if (!(failure instanceof ApiError)) throw failure;
        setError(failure);
      },
    );
    return () => abort.abort();
  }, [templateId, subject, from, changedAt, accountId, round]);
  return { checks, error, again: () => setRound((last) => last + 1) };
}

function Check({ kind, children }: { kind: ChipKind; children: ComponentChildren }) {
  const { t } = useTexts();
  return (
    <li class={kind}>
      <Icon name={STATE_ICONS[kind]} />
      <span>
        {kind !== 'ok' && <span class="unseen">{t(kind === 'bad' ? 'check.bad' : 'check.warn')} </span>}
        {children}
      </span>
    </li>
  );
}

function badFirst(one: Entry, other: Entry): number {
  return Number(other.kind === 'bad') - Number(one.kind === 'bad');
}

function ofAudience(
  choices: Choices,
  { value, error }: Data<AudienceResponse>,
  address: string,
  { t, plural }: Texts,
): Entry {
  const link = { address, name: t('campaigns.step.audience') };
  if (!hasAudience(choices)) return { kind: 'bad', text: t('check.noGroup'), link };
  if (error?.status === 404) return { kind: 'bad', text: t('check.audienceDeleted'), link };
  if (value === null) return { kind: 'ok', text: t('check.counting') };
  return value.eligible === 0
    ? { kind: 'bad', text: t('check.noAudience'), link }
    : { kind: 'ok', text: plural('check.audience', value.eligible) };
}

function ofSender(
  from: string,
  domains: ChecksProps['domains'],
  addresses: { content: string; domains: string },
  { t }: Texts,
): Entry {
  const address = senderAddress(from);
  if (!/^[^\s@]+@[^\s@]+$/.test(address))
    return {
      kind: 'bad',
      text: t('check.noSender'),
      link: { address: addresses.content, name: t('campaigns.step.content') },
    };
  const name = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
  const domain = marketingDomain(domains, name);
  const link = { address: addresses.domains, name: t('page.domains') };
  if (domain === undefined) return { kind: 'bad', text: t('check.sender.unknown', { domain: name }), link };
  if (domain.useCase !== 'mk') return { kind: 'bad', text: t('check.sender.stream', { domain: name }), link };
  return domain.status === 'SUCCESS' || domain.status === 'TEMPORARY_FAILURE'
    ? { kind: 'ok', text: t('check.sender', { domain: name }) }
    : { kind: 'bad', text: t('check.sender.unverified', { domain: name }), link };
}

function ofTest(choices: Choices, address: string, { t }: Texts): Entry[] {
  const { isSame, isShareWrong, isWaitWrong } = testFaults(choices);
  const link = { address, name: t('campaigns.step.content') };
  const same = variantNames(choices).filter((_, index) => isSame(index));
  return [
    ...same.map((name) => ({ kind: 'bad' as const, text: t('check.sameVariant', { name }), link })),
    ...(isShareWrong || isWaitWrong ? [{ kind: 'bad' as const, text: t('check.test'), link }] : []),
  ];
}

type ContentCheck = RenderedMail['preview']['checks'][number];

/** What the server says about the content; a check without texts of the console has its sentence. */
function ofContent(
  { id, level, message, where = [], count, score, threshold, rules }: ContentCheck,
  template: { address: string; name: string },
  content: string,
  { t, plural, size, number, named }: Texts,
): Entry {
  if (level === 'ok' && (id === 'links' || id === 'images'))
    return { kind: level, text: count === 0 ? t(`check.${id}.none`) : plural(`check.${id}`, count) };
  const values: Readonly<Record<string, string>> = {
    count: number(count),
    names: where.join(', '),
    size: size(count),
    limit: size(GMAIL_BYTES),
    score: number(score ?? 0),
    threshold: number(threshold ?? 0),
  };
  const text = named('check', level === 'ok' ? id : `${id}.bad`, message).replaceAll(
    /\{(\w+)\}/g,
    (whole, name: string) => values[name] ?? whole,
  );
  const isOfSubject = id === 'subject' || id === 'capitals' || id === 'punctuation';
  return {
    kind: level,
    text,
    ...(rules === undefined ? {} : { rules }),
    link: isOfSubject ? { address: content, name: t('campaigns.step.content') } : template,
  };
}
