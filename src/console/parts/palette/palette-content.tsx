import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, operate } from '../../api.ts';
import { useNavigation } from '../../routing.ts';
import type { CurrentMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { recentPages } from '../recent-pages.ts';
import type { ListedPage } from './palette.tsx';
import { useActions } from './palette-actions.ts';
import { useFoundResources } from './palette-search.ts';

/** What can be chosen: an address, or something that is done. */
export type PaletteTarget = { title: string; run?: () => void } & { address: string };

export interface PaletteContentProps {
  member: CurrentMember;
  pages: readonly ListedPage[];
  close: () => void;
}

/** More than there are pages and actions: without a text, all are listed. */
const MAX_TARGETS = 48;
/** Pages of resources by the prefix of their ids. */
const BY_ID = [
  { prefix: 'msg_', path: 'messages', text: 'palette.message' },
  { prefix: 'template_', path: 'templates', text: 'palette.template' },
  { prefix: 'campaign_', path: 'campaigns', text: 'palette.campaign' },
  { prefix: 'sgroup_', path: 'groups', text: 'palette.group' },
  { prefix: 'email_', path: 'contacts', text: 'palette.contact' },
  { prefix: 'phone_', path: 'contacts', text: 'palette.contact' },
  { prefix: 'domain_', path: 'domains', text: 'palette.domain' },
  { prefix: 'webhook_', path: 'webhooks', text: 'palette.webhook' },
] as const;
/** A name with a dot. Not linear: a person types it. */
const DOMAIN_NAME = /^[^\s@/_]+\.[^\s@/_]{2,}$/;

const WHOLE_ADDRESS = /[^\s@]@[^\s@]+$/;
/** What may be part of an address, and is neither one with an at sign nor an id. */
const ADDRESS_PART = /^[^\s@_]{3,}$/;

/** The field of the palette, and what it finds. */
export function PaletteContent({ member, pages, close }: PaletteContentProps) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const [selected, setSelected] = useState(0);
  const [domains, setDomains] = useState<{ domain: string; domainId: string }[]>([]);
  const { accountId } = member;
  const resources = useFoundResources(member, text.trim());
  const actions = useActions(member);
  useEffect(() => {
    input.current?.focus();
    if (accountId === '') return;
    operate('get', '/web-setup/domains', { account: accountId }).then(
      (list) => setDomains(list.domains),
      (error: unknown) => {
        // Without the domains, everything else can be found.
        if (!(error instanceof ApiError)) throw error;
      },
    );
  }, [accountId]);
  const found = (entered: string): PaletteTarget[] => {
    const search = entered.trim();
    const lower = search.toLowerCase();
    return [
      ...(lower === ''
        ? recentPages().map(({ title, address }) => ({ title: t('palette.recent', { title }), address }))
        : []),
      ...BY_ID.filter(({ prefix }) => search.startsWith(prefix)).map(({ path, text: key }) => ({
        title: t(key, { id: search }),
        address: href(`${path}/${encodeURIComponent(search)}`),
      })),
      ...(search.startsWith('job_')
        ? [{ title: t('palette.job', { id: search }), address: href('messages', { jobId: search }) }]
        : []),
      ...(search.startsWith('key_') && member.may('listKeys')
        ? [{ title: t('palette.key', { id: search }), address: href('keys') }]
        : []),
      ...(search.includes('@')
        ? [
            {
              title: WHOLE_ADDRESS.test(search)
                ? t('palette.recipient', { address: search })
                : t('palette.recipientPart', { part: search }),
              address: href('messages', { recipient: search }),
            },
            {
              title: t('palette.contact', { id: search }),
              address: href('contacts', { search }),
            },
            ...(WHOLE_ADDRESS.test(search)
              ? [
                  {
                    title: t('palette.suppressions', { address: search }),
                    address: href(`suppressions/${encodeURIComponent(search)}`),
                  },
                ]
              : []),
          ]
        : []),
      ...pages
        .filter(({ title }) => title.toLowerCase().includes(lower))
        .map(({ path, title }) => ({ title: t('palette.page', { title }), address: href(path) })),
      ...domains
        .filter(({ domain }) => lower !== '' && domain.includes(lower))
        .map(({ domain, domainId }) => ({
          title: t('palette.domain', { id: domain }),
          address: href(`domains/${encodeURIComponent(domainId)}`),
        })),
      ...(DOMAIN_NAME.test(search) && member.person.operator
        ? [
            {
              title: t('palette.destination', { domain: lower }),
              address: href(`queue/destinations/${encodeURIComponent(lower)}`),
            },
          ]
        : []),
      ...member.person.memberships
        .filter(
          (each) =>
            lower !== '' && (each.accountId === search || each.accountName.toLowerCase().includes(lower)),
        )
        .map((each) => ({
          title: t('palette.account', { name: each.accountName || each.accountId }),
          address: href('', { account: each.accountId }),
        })),
      ...actions.filter(({ title }) => title.toLowerCase().includes(lower)),
    ].slice(0, MAX_TARGETS);
  };
  const targets: PaletteTarget[] = [
    ...found(text),
    ...resources.map(({ kind, name, path }) => ({
      title: t(`palette.${kind}`, { id: name }),
      address: href(path),
    })),
    ...(ADDRESS_PART.test(text.trim()) && accountId !== ''
      ? [
          {
            title: t('palette.recipientPart', { part: text.trim() }),
            address: href('messages', { recipient: text.trim() }),
          },
        ]
      : []),
  ].slice(0, MAX_TARGETS);
  const current = targets[Math.min(selected, targets.length - 1)];

  const choose = (target: PaletteTarget | undefined) => {
    if (target === undefined) return;
    close();
    if (target.run === undefined) go(target.address);
    else target.run();
  };
  const optionId = (target: PaletteTarget) => `palette-${targets.indexOf(target)}`;
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0 || targets.length === 0) return;
    event.preventDefault();
    setSelected((last) => (Math.min(last, targets.length - 1) + step + targets.length) % targets.length);
  };
  useEffect(() => {
    if (current !== undefined)
      document.getElementById(optionId(current))?.scrollIntoView({ block: 'nearest' });
  }, [selected]);
  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const entered = new FormData(event.currentTarget).get('text');
          // The list does not show yet what was typed last: the first target of the new text is chosen.
          choose(entered === text || typeof entered !== 'string' ? current : found(entered)[0]);
        }}
      >
        <label class="field">
          {t('palette.label')}
          <input
            class="input"
            name="text"
            role="combobox"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-autocomplete="list"
            aria-activedescendant={current === undefined ? undefined : optionId(current)}
            autocomplete="off"
            ref={input}
            spellcheck={false}
            maxLength={320}
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setSelected(0);
            }}
            onKeyDown={move}
          />
        </label>
      </form>
      <ul id="palette-list" role="listbox" aria-label={t('palette.found')} tabIndex={0}>
        {targets.map((target) => (
          <li
            key={target.title + target.address}
            id={optionId(target)}
            role="option"
            aria-selected={target === current}
            onClick={() => choose(target)}
          >
            {target.title}
          </li>
        ))}
      </ul>
      <div class="palette-foot">
        <p role="status" class="small">
          {targets.length === 0 ? t('palette.none') : <span class="keys">{t('palette.hint')}</span>}
        </p>
        <button class="button small" type="button" onClick={close}>
          {t('app.cancel')}
        </button>
      </div>
    </>
  );
}
