import { useState } from 'preact/hooks';
import { ApiError, operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { useChangedForm } from '../../parts/changed-form.ts';
import { CodeEditor } from '../../parts/code-editor/code-editor.tsx';
import { DeletionMenu } from '../../parts/deletion-menu.tsx';
import { Field } from '../../parts/field.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { useMedia } from '../../parts/media.ts';
import { Pager } from '../../parts/pager.tsx';
import { Preview } from '../../parts/preview/preview.tsx';
import { isSourceFault, SourceFaults } from '../../parts/source-faults.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import '../../parts/preview/preview.css';

const ALL = '/web-setup/partials';
const ONE = '/web-setup/partials/{partialId}';
/** The id of the form, whose button is in the head of the page. */
const FORM = 'partial-form';
/** Windows without space for code and preview side by side, as in preview.css. */
const NARROW = '(width < 60rem)';

type Partial = DataOf<typeof ONE>['partial'];

/** The partials of the account: html that its templates in Liquid share. */
export function PartialListPage() {
  const { t, size } = useTexts();
  const { location, href } = useNavigation();
  const { may } = useMember();
  const parameters = { limit: 50, lastKey: location.query['lastKey'] };
  const list = useOperation(ALL, parameters);
  return (
    <Page
      title={t('partials.title')}
      question={t('partials.question')}
      curl={addressOf(ALL, parameters)}
      actions={
        may('createPartial') && (
          <a class="button primary" href={href('templates/partials/new')}>
            <Icon name="plus" />
            {t('partials.new')}
          </a>
        )
      }
    >
      <Loaded data={list} isList>
        {({ partials, nextKey }) => (
          <>
            {partials.length === 0 ? (
              <Empty title={t('partials.empty')} icon="code">
                <p>{t('partials.empty.hint')}</p>
              </Empty>
            ) : (
              <Table
                label={t('partials.title')}
                isList
                heads={[
                  t('people.name'),
                  { text: t('media.size'), end: true },
                  { text: t('templates.updated'), end: true },
                ]}
              >
                {partials.map(({ partialId, name, bytes, updatedAt }) => (
                  <tr key={partialId}>
                    <th scope="row">
                      <a href={href(`templates/partials/${encodeURIComponent(partialId)}`)}>{name}</a>
                    </th>
                    <td class="second end">{size(bytes)}</td>
                    <td class="when">
                      <Time at={updatedAt} />
                    </td>
                  </tr>
                ))}
              </Table>
            )}
            <Pager path="templates/partials" filters={{}} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** A partial: its name, its code next to a preview, and its deletion. `partialId`: `new` for a new one. */
export function PartialPage({ partialId }: { partialId: string }) {
  const { t } = useTexts();
  const isNew = partialId === 'new';
  const data = useOperation(isNew ? null : ONE, { partialId });
  if (isNew) return <Editor partial={null} />;
  if (data.value !== null) return <Editor partial={data.value.partial} />;
  return (
    <Page title={t('partials.title')} curl={addressOf(ONE, { partialId })}>
      <Loaded data={data}>{() => null}</Loaded>
    </Page>
  );
}

/** `partial`: null for a new one. Later versions of it, after events of the account, do not replace the draft. */
function Editor({ partial }: { partial: Partial | null }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const [name, setName] = useState(partial?.name ?? '');
  const [html, setHtml] = useState(partial?.html ?? '');
  const [error, setError] = useState<ApiError | null>(null);
  const isNarrow = useMedia(NARROW);
  const { outcome, run } = useAction();
  const { changing, saved } = useChangedForm(t('partials.unsaved'));
  const readOnly = !may(partial === null ? 'createPartial' : 'updatePartial');
  const address = (id: string) => `templates/partials/${encodeURIComponent(id)}`;
  const save = () =>
    run(async () => {
      const request = { account: accountId, body: { name, html } };
      try {
        const { partial: stored } = await (partial === null
          ? operate('post', ALL, request)
          : operate('put', ONE, { ...request, parameters: { partialId: partial.partialId } }));
        saved();
        toast(t('media.saved', { name }));
        if (partial === null) go(href(address(stored.partialId)), { replace: true, discard: true });
        return '';
      } catch (failure) {
        if (!(failure instanceof ApiError)) throw failure;
        if (failure.code === 'PARTIAL_IN_USE') throw new Error(usedBy(failure), { cause: failure });
        if (!isSourceFault(failure)) throw failure;
        setError(failure);
        return '';
      }
    });
  const usedBy = (failure: ApiError) => t('partials.used', { names: failure.names.join(', ') });
  const remove = (id: string) =>
    run(async () => {
      try {
        await operate('delete', ONE, { account: accountId, parameters: { partialId: id } });
      } catch (failure) {
        if (!(failure instanceof ApiError) || failure.code !== 'PARTIAL_IN_USE') throw failure;
        throw new Error(usedBy(failure), { cause: failure });
      }
      toast(t('media.deleted', { name }));
      go(href('templates/partials'), { discard: true });
      return '';
    });
  return (
    <Page
      title={partial?.name ?? t('partials.new')}
      actions={
        <>
          {!readOnly && (
            <Button
              type="submit"
              form={FORM}
              kind="primary"
              label={t('me.save')}
              isBusy={outcome?.running === true}
            />
          )}
          {partial !== null && may('deletePartial') && (
            <DeletionMenu
              name={partial.name}
              label={t('partials.delete')}
              question={t('partials.delete.confirm', { name: partial.name })}
              remove={() => remove(partial.partialId)}
            />
          )}
        </>
      }
      curl={partial === null ? addressOf(ALL) : addressOf(ONE, { partialId: partial.partialId })}
    >
      {outcome?.failed && <Outcome of={outcome} />}
      {readOnly && <p class="small">{t('messages.notAllowed')}</p>}
      <form
        id={FORM}
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <fieldset class="plain card-body" disabled={readOnly}>
          <Field
            label={t('people.name')}
            hint={t('partials.name.hint', { tag: `{% render "${name === '' ? 'header' : name}" %}` })}
          >
            {(control) => (
              <input
                {...control}
                class="input"
                value={name}
                required
                maxLength={100}
                pattern="[A-Za-z0-9_\-]+"
                autocomplete="off"
                spellcheck={false}
                onInput={({ currentTarget: { value } }) => changing(setName)(value)}
              />
            )}
          </Field>
        </fieldset>
      </form>
      <div class={isNarrow ? undefined : 'editor'}>
        <section class="card" aria-label={t('templates.code')}>
          <div class="card-body">
            <CodeEditor
              label={t('templates.code')}
              value={html}
              readOnly={readOnly}
              onChange={changing(setHtml)}
            />
            <SourceFaults error={error} />
          </div>
        </section>
        <div class="card">
          <Preview
            content={{ subject: '', html, text: null, syntax: 'liquid' }}
            page={address(partial?.partialId ?? 'new')}
            hasOwnFaults
            hasOwnSourceFaults
            onError={setError}
          />
        </div>
      </div>
    </Page>
  );
}
