import { useState } from 'preact/hooks';
import { useConsoleData, useOperation } from '../../data.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Card, Skeleton } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

/** Accounts whose list was dismissed in this browser. */
const DISMISSED = 'postrider-checklist-dismissed';

/** The steps to the first message, while nothing was sent; each is a link to the page where it is done. */
export function Checklist() {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { accountId, has } = useMember();
  const [isDismissed, setDismissed] = useState(() => dismissed().includes(accountId));
  const passkeys = useConsoleData<{ passkeys: unknown[] }>('/console/me/passkeys');
  const domains = useOperation('/web-setup/domains');
  const keys = useOperation(has('keys') ? '/web-setup/keys' : null);
  const people = useConsoleData<{ people: unknown[] }>(has('people') ? '/console/people' : null, accountId);
  if (isDismissed) return null;
  const read = [passkeys, domains, ...(has('keys') ? [keys] : []), ...(has('people') ? [people] : [])];
  // Not before all of it is there: the steps would change. What cannot be read is not done.
  if (read.some(({ value, error }) => value === null && error === null)) return <Skeleton />;
  const steps = [
    { key: 'passkey', page: 'me', isDone: (passkeys.value?.passkeys.length ?? 0) > 0 },
    { key: 'domain', page: 'domains', isDone: (domains.value?.domains.length ?? 0) > 0 },
    {
      key: 'records',
      page: 'domains',
      isDone: domains.value?.domains.some(({ status }) => status === 'SUCCESS') === true,
    },
    ...(has('keys')
      ? [{ key: 'key' as const, page: 'keys', isDone: (keys.value?.keys.length ?? 0) > 0 }]
      : []),
    { key: 'message', page: has('develop') ? 'reference' : 'campaigns', isDone: false },
    ...(has('people')
      ? [{ key: 'people' as const, page: 'people', isDone: (people.value?.people.length ?? 0) > 1 }]
      : []),
  ] as const;
  const done = steps.filter(({ isDone }) => isDone).length;
  const dismiss = () => {
    localStorage.setItem(DISMISSED, JSON.stringify([...dismissed(), accountId]));
    setDismissed(true);
  };
  return (
    <Card
      title={t('checklist.title')}
      action={
        <span class="actions">
          <span class="small">{t('checklist.done', { done, total: steps.length })}</span>
          <button type="button" class="button ghost" onClick={dismiss}>
            {t('checklist.dismiss')}
          </button>
        </span>
      }
    >
      <ol class="checklist">
        {steps.map(({ key, page, isDone }) => (
          <li key={key} class={isDone ? 'done' : ''}>
            <Icon name={isDone ? 'circle-check' : 'circle'} />
            <a href={href(page)}>{t(`checklist.${key}`)}</a>
            {isDone && <span class="unseen">{t('checklist.isDone')}</span>}
          </li>
        ))}
      </ol>
    </Card>
  );
}

function dismissed(): string[] {
  const stored: unknown = JSON.parse(localStorage.getItem(DISMISSED) ?? '[]');
  return Array.isArray(stored) ? stored.filter((entry) => typeof entry === 'string') : [];
}
