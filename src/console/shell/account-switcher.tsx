import { useState } from 'preact/hooks';
import { Icon } from '../parts/icon/icon.tsx';
import { Popover } from '../parts/popover.tsx';
import { useNavigation } from '../routing.ts';
import type { SessionPerson } from '../session.ts';
import { useTexts } from '../texts.ts';

/** With more accounts, the list has a search. */
const MANY = 7;

/** The account that the pages are about, and the way to another one. */
export function AccountSwitcher({ person, accountId }: { person: SessionPerson; accountId: string }) {
  const { t } = useTexts();
  const current = person.memberships.find((entry) => entry.accountId === accountId);
  const name = current?.accountName || accountId || t('app.account');
  return (
    <Popover
      buttonClass="switcher"
      popoverClass="switcher-list"
      button={
        <>
          <Tile name={name} />
          <span class="unseen">{t('app.account')}: </span>
          <span class="cut">{name}</span>
          <Icon name="chevrons-up-down" />
        </>
      }
    >
      {(close) => <Accounts person={person} accountId={accountId} close={close} />}
    </Popover>
  );
}

interface AccountsProps {
  person: SessionPerson;
  accountId: string;
  close: () => void;
}

function Accounts({ person, accountId, close }: AccountsProps) {
  const { t } = useTexts();
  const { location, href } = useNavigation();
  const [search, setSearch] = useState('');
  const [page = ''] = location.segments;
  const { memberships } = person;
  const found = memberships.filter(
    (entry) =>
      entry.accountId === search.trim() ||
      entry.accountName.toLowerCase().includes(search.trim().toLowerCase()),
  );
  return (
    <>
      {memberships.length > MANY && (
        <div class="menu-search">
          <input
            class="input"
            type="search"
            aria-label={t('app.account.search')}
            placeholder={t('app.account.search')}
            maxLength={200}
            autocomplete="off"
            onInput={({ currentTarget: { value } }) => setSearch(value)}
          />
        </div>
      )}
      <ul class="menu-list" aria-label={t('app.accounts')}>
        {found.map((entry) => {
          const name = entry.accountName || entry.accountId;
          const isCurrent = entry.accountId === accountId;
          return (
            <li key={entry.accountId}>
              <a
                class="menu-item"
                href={href(page, { account: entry.accountId })}
                aria-current={isCurrent ? 'true' : undefined}
                onClick={close}
              >
                <Tile name={name} />
                {name}
                {isCurrent && <Icon name="check" />}
              </a>
            </li>
          );
        })}
      </ul>
      {person.operator && (
        <>
          <div class="menu-line" />
          <a class="menu-item" href={href('system/accounts')} onClick={close}>
            <Icon name="settings" />
            {t('app.accounts.manage')}
          </a>
        </>
      )}
    </>
  );
}

/** The first letter of a name. */
export function Tile({ name, isRound = false }: { name: string; isRound?: boolean }) {
  // Not as text: what a person sees of a button is then what its name contains.
  const letter = String.fromCodePoint(name.codePointAt(0) ?? 0x20).toUpperCase();
  return <span class={isRound ? 'tile round' : 'tile'} aria-hidden="true" data-letter={letter} />;
}
