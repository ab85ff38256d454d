import { useEffect, useState } from 'preact/hooks';
import { ApiError, operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { useChangedForm } from '../../parts/changed-form.ts';
import { DeletionMenu } from '../../parts/deletion-menu.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { toast } from '../../parts/toast.tsx';
import { Card, Loaded, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { nameOf } from '../contacts/contact-list.tsx';
import { Builder } from './builder.tsx';
import {
  type ConditionGroup,
  filterOf,
  groupOf,
  isComplete,
  newGroup,
  type SegmentFilter,
} from './conditions.ts';

const ONE = '/web-setup/segments/{segmentId}';
const ALL = '/web-setup/segments';

type Segment = DataOf<typeof ONE>['segment'];

/** A new segment: its name and its filter. */
export function NewSegmentPage() {
  const { t } = useTexts();
  return (
    <Page title={t('segments.new')} curl={addressOf(ALL)}>
      <Editor segment={null} />
    </Page>
  );
}

/** A segment: its filter, how many contacts match it, and its deletion. */
export function SegmentPage({ segmentId }: { segmentId: string }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const parameters = { segmentId };
  const data = useOperation(ONE, parameters);
  const { outcome, run } = useAction();
  const name = data.value?.segment.name ?? '';
  const remove = () =>
    run(async () => {
      await operate('delete', ONE, { account: accountId, parameters });
      toast(t('segments.deleted', { segment: name }));
      go(href('segments'), { discard: true });
      return '';
    });
  return (
    <Page
      title={data.value?.segment.name ?? t('page.segments')}
      actions={
        data.value !== null && (
          <>
            <a class="button" href={href('contacts', { segmentId })}>
              <Icon name="users" />
              {t('page.contacts')}
            </a>
            {may('deleteSegment') && (
              <DeletionMenu
                name={name}
                label={t('segments.delete')}
                question={t('segments.delete.confirm', { segment: name })}
                remove={remove}
              />
            )}
          </>
        )
      }
      curl={addressOf(ONE, parameters)}
    >
      {outcome?.failed && <Outcome of={outcome} />}
      <Loaded data={data}>{({ segment }) => <Editor key={segment.updatedAt} segment={segment} />}</Loaded>
    </Page>
  );
}

/** `segment`: null for a new one. */
function Editor({ segment }: { segment: Segment | null }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const [name, setName] = useState(segment?.name ?? '');
  const [group, setGroup] = useState<ConditionGroup>(() =>
    segment === null ? newGroup() : groupOf(segment.filter),
  );
  const { outcome, run } = useAction();
  const { changing, saved } = useChangedForm(t('segments.unsaved'));
  const filter = isComplete(group) ? filterOf(group) : null;
  const mayChange = may(segment === null ? 'createSegment' : 'updateSegment');
  const save = () =>
    run(async () => {
      if (filter === null) return t('segments.incomplete');
      const body = { name: name.trim(), filter };
      const { segment: stored } =
        segment === null
          ? await operate('post', ALL, { account: accountId, body })
          : await operate('patch', ONE, {
              account: accountId,
              parameters: { segmentId: segment.segmentId },
              body,
            });
      toast(t('segments.saved', { segment: stored.name }));
      saved();
      if (segment === null) go(href(`segments/${encodeURIComponent(stored.segmentId)}`), { discard: true });
      return '';
    });
  return (
    <form
      class="segment-columns"
      aria-label={t('segments.filter')}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Card title={t('segments.filter')}>
        <div class="card-body">
          <label class="field">
            {t('people.name')}
            <input
              class="input"
              required
              maxLength={200}
              autocomplete="off"
              value={name}
              onInput={({ currentTarget: { value } }) => changing(setName)(value)}
            />
          </label>
          <Builder group={group} onChange={changing(setGroup)} />
          {mayChange && (
            <div class="actions">
              <Button
                type="submit"
                kind="primary"
                label={t('segments.save')}
                isBusy={outcome?.running === true}
                isDisabled={filter === null}
              />
            </div>
          )}
          <Outcome of={outcome} />
        </div>
      </Card>
      <Preview filter={filter} />
    </form>
  );
}

/** How long the form rests before its contacts are counted. */
const REST_MS = 400;

type Counted = DataOf<'/web-setup/segments/preview', 'post'>;

/** The number of contacts that match, while the form changes, and the newest of them. `filter`: null while it is incomplete. */
function Preview({ filter }: { filter: SegmentFilter | null }) {
  const { t, plural, errorText } = useTexts();
  const { href } = useNavigation();
  const { accountId } = useMember();
  const [counted, setCounted] = useState<Counted | null>(null);
  const [failure, setFailure] = useState('');
  const text = filter === null ? null : JSON.stringify(filter);
  useEffect(() => {
    if (text === null) return undefined;
    const abort = new AbortController();
    const { signal } = abort;
    const count = async () => {
      try {
        const body: { filter: SegmentFilter } = { filter: JSON.parse(text) };
        setCounted(
          await operate('post', '/web-setup/segments/preview', { account: accountId, body, signal }),
        );
        setFailure('');
      } catch (error) {
        if (!signal.aborted) setFailure(error instanceof ApiError ? errorText(error) : String(error));
      }
    };
    const timer = setTimeout(() => void count(), REST_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, accountId]);
  const isCurrent = filter !== null && failure === '';
  return (
    <Card title={t('segments.preview')}>
      <div class="card-body">
        <p role="status" class="segment-count">
          {isCurrent && counted !== null ? plural('segments.count', counted.count) : '…'}
        </p>
        {filter === null && <p class="small">{t('segments.incomplete')}</p>}
        {failure !== '' && (
          <p class="small" role="alert">
            {failure}
          </p>
        )}
        {isCurrent && counted !== null && counted.contacts.length > 0 && (
          <>
            <p class="small">{t('segments.newest')}</p>
            <ul class="segment-sample">
              {counted.contacts.map((contact) => (
                <li key={contact.contactIdentifier}>
                  <a href={href(`contacts/${encodeURIComponent(contact.contactIdentifier)}`)}>
                    {nameOf(contact)}
                  </a>
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </Card>
  );
}
