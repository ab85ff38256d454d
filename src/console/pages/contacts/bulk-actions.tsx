import { useRef, useState } from 'preact/hooks';
import { ApiError, callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { Confirmed } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { type ListedContact, nameOf } from './contact-list.tsx';

interface Progress {
  done: number;
  total: number;
  /** Contacts whose request was refused, with the reason. */
  refused: string[];
}

interface BulkActionsProps {
  chosen: ListedContact[];
  onAll: (all: boolean) => void;
  onDone: () => void;
}

/** Actions on the chosen contacts: one request for each, with progress; those that are refused are listed. */
export function BulkActions({ chosen, onAll, onDone }: BulkActionsProps) {
  const { t } = useTexts();
  const { accountId, may } = useMember();
  const groups = useData<{ groups: { subscriptionGroupId: string; name: string }[] }>(
    '/web-setup/contacts/subscription-groups?limit=200',
  );
  const group = useRef<HTMLSelectElement>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  const isRunning = progress !== null && progress.done < progress.total;

  const each = async (change: (contact: ListedContact) => Promise<unknown>) => {
    const refused: string[] = [];
    setProgress({ done: 0, total: chosen.length, refused });
    for (const [index, contact] of chosen.entries()) {
      await change(contact).catch((error: unknown) => {
        if (!(error instanceof ApiError)) throw error;
        refused.push(`${nameOf(contact)}: ${error.message}`);
      });
      setProgress({ done: index + 1, total: chosen.length, refused });
    }
    onAll(false);
    onDone();
  };
  const send = (path: string, method: 'POST' | 'PATCH' | 'DELETE', body?: object) =>
    callApi(path, { method, account: accountId, ...(body === undefined ? {} : { body }) });
  const contactPath = ({ contactIdentifier }: ListedContact) =>
    `/web-setup/contacts/${encodeURIComponent(contactIdentifier)}`;
  /** Read before the first request, during which the choice of a group is not shown. */
  const membersPath = () =>
    `/web-setup/contacts/subscription-groups/${encodeURIComponent(group.current?.value ?? '')}/subscriptions`;
  const count = chosen.length;
  return (
    <section aria-label={t('contacts.bulk')}>
      <div class="actions">
        <button type="button" onClick={() => onAll(true)}>
          {t('contacts.chooseAll')}
        </button>
        <button type="button" disabled={count === 0} onClick={() => onAll(false)}>
          {t('contacts.chooseNone')}
        </button>
        <span>{t('contacts.chosen', { count })}</span>
      </div>
      {count > 0 && !isRunning && (
        <div class="actions">
          {groups.value !== null && groups.value.groups.length > 0 && (
            <>
              <label>
                {t('contacts.group')}
                <select ref={group}>
                  {groups.value.groups.map(({ subscriptionGroupId, name }) => (
                    <option value={subscriptionGroupId} key={subscriptionGroupId}>
                      {name}
                    </option>
                  ))}
                </select>
              </label>
              <button
                type="button"
                onClick={() => {
                  const path = membersPath();
                  void each(({ contactIdentifier }) => send(path, 'POST', { contactIdentifier }));
                }}
              >
                {t('contacts.addToGroup')}
              </button>
              <button
                type="button"
                onClick={() => {
                  const path = membersPath();
                  void each(({ contactIdentifier }) =>
                    send(`${path}/${encodeURIComponent(contactIdentifier)}`, 'DELETE'),
                  );
                }}
              >
                {t('contacts.removeFromGroup')}
              </button>
            </>
          )}
          <Confirmed
            label={t('contacts.unsubscribe')}
            question={t('contacts.unsubscribe.confirm', { count })}
            action={() =>
              each((contact) => send(contactPath(contact), 'PATCH', { globalStatus: 'unsubscribed' }))
            }
          />
          {may('eraseContact') && (
            <Confirmed
              label={t('contacts.erase')}
              question={t('contacts.erase.confirm', { count })}
              action={() => each((contact) => send(contactPath(contact), 'DELETE'))}
            />
          )}
        </div>
      )}
      {progress !== null && (
        <>
          <p role="status">
            {t('contacts.progress', {
              done: progress.done,
              total: progress.total,
              failed: progress.refused.length,
            })}
          </p>
          {isRunning && (
            <progress aria-label={t('contacts.bulk')} max={progress.total} value={progress.done} />
          )}
          <ul>
            {progress.refused.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
