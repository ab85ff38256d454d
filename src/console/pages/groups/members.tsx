import { useEffect } from 'preact/hooks';
import { ApiError, operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { CreationDrawer } from '../../parts/drawer.tsx';
import { fieldChoice, fieldText, filledTexts } from '../../parts/field-text.ts';
import { useHeldActions } from '../../parts/held-action.ts';
import { ListFilters } from '../../parts/list-filters.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { Chip, Empty, Loaded, Outcome, RowActions, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { Group } from './group-list.tsx';

export const MEMBERS = '/web-setup/contacts/subscription-groups/{subscriptionGroupId}/subscriptions';
const MEMBER = `${MEMBERS}/{identifier}` as const;

type Member = DataOf<typeof MEMBERS>['subscribers'][number];

const FILTERS = ['search', 'isActive'] as const;
/** How a person consented, as far as someone can say who enters one address. */
const METHODS = [
  'single_opt_in',
  'web_form',
  'double_opt_in',
  'other',
] as const satisfies Member['consentMethod'][];

interface MembersProps {
  group: Group;
  page: string;
  /** How many members were added on the page: the list is read again. */
  additions: number;
  onChange: () => void;
}

/** The members of a group: search, add, pause, remove. */
export function Members({ group, page, additions, onChange }: MembersProps) {
  const { t, named } = useTexts();
  const { location, href } = useNavigation();
  const { accountId, may } = useMember();
  const { subscriptionGroupId } = group;
  const filters = Object.fromEntries(FILTERS.map((name) => [name, location.query[name]]));
  const isSearch = Object.values(filters).some((value) => value !== undefined);
  const list = useOperation(MEMBERS, {
    subscriptionGroupId,
    ...filters,
    lastKey: location.query['lastKey'],
  });
  useEffect(() => {
    if (additions > 0) list.reload();
  }, [additions]);
  const { outcome, run } = useAction();
  const reload = () => {
    list.reload();
    onChange();
  };
  const { isHeld, hold } = useHeldActions(list.value, reload);
  const about = ({ contactIdentifier }: Member) => ({
    account: accountId,
    parameters: { subscriptionGroupId, identifier: contactIdentifier },
  });
  const keyOf = (action: 'remove' | 'deactivate', member: Member) =>
    `${action} ${addressOf(MEMBER, about(member).parameters)}`;
  const remove = (member: Member) =>
    hold({
      key: keyOf('remove', member),
      text: t('groups.memberRemoved.of', { contact: nameOf(member) }),
      action: (options) => operate('delete', MEMBER, { ...about(member), ...options }),
    });
  const deactivate = (member: Member) =>
    hold({
      key: keyOf('deactivate', member),
      text: t('groups.deactivated', { contact: nameOf(member) }),
      action: (options) =>
        operate('patch', MEMBER, { ...about(member), body: { isActive: false }, ...options }),
    });
  const activate = (member: Member) =>
    run(async () => {
      await operate('patch', MEMBER, { ...about(member), body: { isActive: true } });
      reload();
      return t('groups.memberChanged');
    });
  const mayChange = may('patchSubscription');
  return (
    <div class="card">
      <ListFilters
        path={page}
        query={filters}
        hasNoViews
        search={{ name: 'search', label: t('groups.search') }}
        filters={[
          {
            name: 'isActive',
            label: t('messages.status'),
            options: [
              { value: 'true', name: t('groups.status.active') },
              { value: 'false', name: t('groups.status.inactive') },
            ],
          },
        ]}
      />
      <Outcome of={outcome} />
      <Loaded data={list} isList>
        {({ subscribers: read, nextKey }) => {
          const subscribers = read
            .filter((each) => !isHeld(keyOf('remove', each)))
            .map((each) => (isHeld(keyOf('deactivate', each)) ? { ...each, isActive: false } : each));
          return (
            <>
              {subscribers.length > 0 ? (
                <Table
                  label={t('groups.members')}
                  isList
                  heads={[
                    t('groups.contact'),
                    t('messages.status'),
                    t('groups.consent'),
                    { text: t('groups.since'), end: true },
                    ...(mayChange ? [{ text: t('people.actions'), unseen: true } as const] : []),
                  ]}
                >
                  {subscribers.map((each) => (
                    <tr key={each.contactIdentifier}>
                      <th scope="row">
                        <a href={href(`contacts/${encodeURIComponent(each.contactIdentifier)}`)}>
                          {nameOf(each)}
                        </a>
                        {(each.firstName || each.lastName) && (
                          <span class="small">
                            {[each.firstName, each.lastName].filter(Boolean).join(' ')}
                          </span>
                        )}
                      </th>
                      <td class="aside">
                        <Chip kind={each.isActive && each.globalStatus === 'active' ? 'ok' : 'bad'}>
                          {each.isActive
                            ? named('groups.status', each.globalStatus)
                            : t('groups.status.inactive')}
                        </Chip>
                      </td>
                      <td class="second">
                        {t(`groups.consent.${each.consentMethod}`)}
                        {each.consentDetails !== undefined && (
                          <span class="small">{each.consentDetails}</span>
                        )}
                      </td>
                      <td class="when">
                        <Time at={each.joinedAt} />
                      </td>
                      {mayChange && (
                        <td class="menu">
                          <RowActions
                            label={nameOf(each)}
                            actions={[
                              ...(each.isActive
                                ? [{ label: t('groups.deactivate'), action: async () => deactivate(each) }]
                                : isHeld(keyOf('deactivate', each))
                                  ? []
                                  : [
                                      {
                                        label: t('groups.activate'),
                                        question: t('groups.activate.confirm', { contact: nameOf(each) }),
                                        action: () => activate(each),
                                      },
                                    ]),
                              { isDanger: true, label: t('people.remove'), action: async () => remove(each) },
                            ]}
                          />
                        </td>
                      )}
                    </tr>
                  ))}
                </Table>
              ) : nextKey !== undefined ? (
                <Empty title={t('groups.partial')} />
              ) : isSearch ? (
                <Empty title={t('groups.noMatch')}>
                  <p>{t('messages.noMatch.hint')}</p>
                </Empty>
              ) : (
                <Empty title={t('groups.noMembers')}>
                  <p>{t('groups.noMembers.hint')}</p>
                </Empty>
              )}
              <Pager path={page} filters={filters} nextKey={nextKey} />
            </>
          );
        }}
      </Loaded>
    </div>
  );
}

function nameOf({ email, phone, contactIdentifier }: Member): string {
  return email || phone || contactIdentifier;
}

/** Whether the account has a contact with this address; false if a search did not find it. */
async function exists(accountId: string, email: string): Promise<boolean> {
  const { contacts } = await operate('get', '/web-setup/contacts', {
    account: accountId,
    parameters: { search: email, limit: 10 },
  });
  return contacts.some((contact) => contact.email?.toLowerCase() === email.toLowerCase());
}

/** Adds an address; a contact is created if there is none. */
export function Addition({ groupId, onAdded }: { groupId: string; onAdded: () => void }) {
  const { t } = useTexts();
  return (
    <CreationDrawer title={t('groups.add')}>
      {(close) => (
        <AdditionForm
          groupId={groupId}
          onAdded={(text) => {
            close();
            toast(text);
            onAdded();
          }}
        />
      )}
    </CreationDrawer>
  );
}

function AdditionForm({ groupId, onAdded }: { groupId: string; onAdded: (text: string) => void }) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const add = (form: HTMLFormElement) =>
    run(async () => {
      const fields = new FormData(form);
      const email = fieldText(fields, 'email');
      const body = {
        email,
        consentMethod: fieldChoice(fields, 'consentMethod', METHODS),
        ...filledTexts(fields, 'consentDetails'),
      };
      if (!(await exists(accountId, email)))
        await operate('post', '/web-setup/contacts', { account: accountId, body }).catch((error: unknown) => {
          // The search did not examine all contacts.
          if (!(error instanceof ApiError) || error.code !== 'CONTACT_ALREADY_EXISTS') throw error;
        });
      const { message } = await operate('post', MEMBERS, {
        account: accountId,
        parameters: { subscriptionGroupId: groupId },
        body,
      });
      onAdded(`${email}: ${message}`);
      return '';
    });
  return (
    <>
      <p class="small">{t('groups.add.hint')}</p>
      <form
        aria-label={t('groups.add')}
        onSubmit={(event) => {
          event.preventDefault();
          void add(event.currentTarget);
        }}
      >
        <label class="field">
          {t('signIn.email')}
          <input
            class="input"
            name="email"
            required
            maxLength={320}
            autocomplete="off"
            autocapitalize="none"
          />
        </label>
        <label class="field">
          {t('groups.consent')}
          <select class="select" name="consentMethod">
            {METHODS.map((method) => (
              <option value={method} key={method}>
                {t(`groups.consent.${method}`)}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          {t('groups.consent.details')}
          <input class="input" name="consentDetails" maxLength={2000} autocomplete="off" />
        </label>
        <div class="actions">
          <Button
            type="submit"
            kind="primary"
            label={t('groups.addNow')}
            isBusy={outcome?.running === true}
          />
        </div>
      </form>
      <Outcome of={outcome} />
    </>
  );
}
