import { useState } from 'preact/hooks';
import { renderDesign } from '../../../mail/blocks/render.ts';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { type Design, finishedPart } from '../../parts/block-editor/design.ts';
import { Button } from '../../parts/button.tsx';
import { CodeEditor } from '../../parts/code-editor/code-editor.tsx';
import { useHeldActions } from '../../parts/held-action.ts';
import { lazyPage } from '../../parts/lazy.tsx';
import { useMedia } from '../../parts/media.ts';
import { Preview } from '../../parts/preview/preview.tsx';
import { TabList } from '../../parts/tabs.tsx';
import { TestMessage } from '../../parts/test-message.tsx';
import { Confirmed, Empty, Failure, Outcome, Page, RowActions, Skeleton, useAction } from '../../parts.tsx';
import { useNavigation, useUnsavedWarning } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { type Start, StartChoice } from './start-choice.tsx';
import { deletionKey } from './template-list.tsx';
import { Versions } from './versions.tsx';
import '../../parts/preview/preview.css';

/** The id of the form, whose button is in the head of the page. */
const FORM = 'template-form';
/** Windows without space for code and preview side by side, as in preview.css. */
const NARROW = '(width < 60rem)';
const PATH = '/web-setup/templates/{templateId}';

type Template = DataOf<typeof PATH>['template'];
/** The fields of the form; `subject` is '' if the template has none. */
type Draft = Pick<Template, 'name' | 'html'> & {
  subject: string;
  type: Template['type'] | null;
  text: string | null;
  /** The mail as blocks, of which `html` is made; null: the html is written by hand. */
  design: Design | null;
};

const BlockEditor = lazyPage(
  async () => (await import('../../parts/block-editor/block-editor.tsx')).BlockEditor,
);

/** An example with a variable of a contact, and the footer without which mail is refused. */
const FIRST_HTML = `<!doctype html>
<html>
  <body>
    <p>Hello {{firstName|there}},</p>
    <p>…</p>
    <p>{{company_address_html}}{{unsubscribe_email_html}}</p>
  </body>
</html>
`;

/** The result of the last creation, which the page of the new template shows once. */
let created: { templateId: string; text: string } | null = null;

function textOfCreation(templateId: string | undefined): string | null {
  const text = created !== null && created.templateId === templateId ? created.text : null;
  created = null;
  return text;
}

/** The blocks of a template, or its code and next to it a preview for a contact; on phones one of them. */
export function TemplatePage({ templateId }: { templateId: string }) {
  const isNew = templateId === 'new';
  const data = useOperation(isNew ? null : PATH, { templateId });
  const { t } = useTexts();
  if (isNew) return <NewTemplate />;
  if (data.value !== null) {
    const { template } = data.value;
    const { name, html, type = null, subject = '', text = null, design = null } = template;
    return <Editor template={template} first={{ name, type, subject, html, text, design }} />;
  }
  // The heading of the page, which gets the focus, is that of the template.
  if (data.error === null) return <Skeleton />;
  return (
    <Page title={t('page.templates')} curl={addressOf(PATH, { templateId })}>
      <Failure error={data.error} retry={data.reload} />
    </Page>
  );
}

/** A new template: what it starts with, then its editor. */
function NewTemplate() {
  const { t } = useTexts();
  const [start, setStart] = useState<Start | null>(null);
  if (start === null)
    return (
      <Page title={t('templates.new')}>
        <StartChoice hasHtml onChoose={setStart} />
      </Page>
    );
  const { name, type, subject, html, design } = start;
  return (
    <Editor template={null} first={{ name, type, subject, html: html ?? FIRST_HTML, text: null, design }} />
  );
}

interface EditorProps {
  /** Null for a new one. Later versions of it, after events of the account, do not replace the draft. */
  template: Template | null;
  first: Draft;
}

function Editor({ template, first }: EditorProps) {
  const { t, plural } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const [draft, setDraft] = useState(first);
  const [saved, setSaved] = useState(draft);
  const [saves, setSaves] = useState(0);
  /** Number of restored versions: each is shown by a new editor. */
  const [restored, setRestored] = useState(0);
  const [firstText] = useState(() => textOfCreation(template?.templateId));
  const { outcome, run } = useAction(
    firstText === null ? null : { text: firstText, running: false, failed: false },
  );
  const isNarrow = useMedia(NARROW);
  const { design } = draft;
  const [pane, setPane] = useState<'details' | 'blocks' | 'code' | 'preview'>(
    design !== null ? 'blocks' : template === null || !isNarrow ? 'code' : 'preview',
  );
  /** Blocks that lack something to be sent. */
  const [unfinished, setUnfinished] = useState(0);
  /** Code and preview are next to each other. */
  const isBeside = !isNarrow && design === null;
  /** The name and subject of a new template are what a person writes first. */
  const hasDetailsTab = isNarrow && template !== null;
  const { hold } = useHeldActions(template, () => {});
  const readOnly = !may(template === null ? 'createTemplate' : 'updateTemplate');
  const change = (fields: Partial<Draft>) => setDraft((last) => ({ ...last, ...fields }));
  useUnsavedWarning(draft !== saved, t('templates.unsaved'));

  /** A browser shows no message at a field that is not visible. */
  const showInvalid = (event: Event) => {
    const { target } = event;
    if (!hasDetailsTab || pane === 'details' || !(target instanceof HTMLInputElement)) return;
    event.preventDefault();
    setPane('details');
    requestAnimationFrame(() => target.reportValidity());
  };
  const save = () =>
    run(async () => {
      if (unfinished > 0) throw new Error(plural('templates.unfinished', unfinished));
      const { html, ...fields } = draft;
      const subject = draft.subject === '' ? null : draft.subject;
      // The server makes the html of a design.
      const body = { ...fields, subject, ...(design !== null ? {} : { html: html === '' ? null : html }) };
      const request = { account: accountId, body };
      const answer = await (template === null
        ? operate('post', '/web-setup/templates', request)
        : operate('put', PATH, { ...request, parameters: { templateId: template.templateId } }));
      // Changes since the request are not saved.
      setSaved(draft);
      setSaves((last) => last + 1);
      const text = [t('me.saved'), ...(answer.warnings ?? [])].join('. ');
      if (template === null) {
        const { templateId } = answer.template;
        created = { templateId, text };
        go(href(`templates/${encodeURIComponent(templateId)}`), { replace: true, discard: true });
      }
      return text;
    });
  const remove = () => {
    if (template === null) return;
    go(href('templates'), { discard: true });
    hold({
      key: deletionKey(template.templateId),
      text: t('templates.deleted', { name: template.name }),
      action: (options) =>
        operate('delete', PATH, {
          account: accountId,
          parameters: { templateId: template.templateId },
          ...options,
        }),
    });
  };
  const form = (
    <form
      id={FORM}
      class="card"
      onInvalidCapture={showInvalid}
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <fieldset class="plain card-body" disabled={readOnly}>
        <div class="search">
          <label class="field">
            {t('people.name')}
            <input
              class="input"
              value={draft.name}
              required
              maxLength={200}
              autocomplete="off"
              onInput={(event) => change({ name: event.currentTarget.value })}
            />
          </label>
          <label class="field">
            {t('messages.subject')}
            <input
              class="input"
              value={draft.subject}
              maxLength={998}
              autocomplete="off"
              onInput={(event) => change({ subject: event.currentTarget.value })}
            />
          </label>
          <label class="field">
            {t('templates.stream')}
            <select
              class="select"
              value={draft.type ?? ''}
              onChange={({ currentTarget: { value } }) =>
                change({ type: value === 'marketing' || value === 'transactional' ? value : null })
              }
            >
              <option value="">{t('templates.stream.both')}</option>
              <option value="transactional">{t('templates.stream.transactional')}</option>
              <option value="marketing">{t('templates.stream.marketing')}</option>
            </select>
          </label>
        </div>
      </fieldset>
    </form>
  );
  const useBlocks = ({ design: chosen, html, subject }: Start) => {
    change({ design: chosen, html: html ?? draft.html, ...(draft.subject === '' ? { subject } : {}) });
    setRestored(restored + 1);
    setPane(chosen === null ? 'code' : 'blocks');
  };
  const panes = {
    blocks:
      design === null ? (
        <NoBlocks isReadOnly={readOnly} onChoose={useBlocks} />
      ) : (
        <BlockEditor
          key={restored}
          design={design}
          isReadOnly={readOnly}
          onChange={(changed: Design, count: number) => {
            setUnfinished(count);
            change({ design: changed, html: renderDesign(finishedPart(changed)) });
          }}
        />
      ),
    code: (
      <section class="card" aria-label={t('templates.code')}>
        <div class="card-body">
          {design !== null && !readOnly && (
            <div class="actions">
              <p class="small">{t('templates.htmlOfBlocks')}</p>
              <Confirmed
                label={t('templates.editHtml')}
                question={t('templates.editHtml.question')}
                action={async () => {
                  change({ design: null });
                  setUnfinished(0);
                }}
              />
            </div>
          )}
          <CodeEditor
            key={design === null ? restored : draft.html}
            label={t('templates.code')}
            value={draft.html}
            readOnly={readOnly || design !== null}
            onChange={(html) => change({ html })}
          />
          <TextPart text={draft.text} readOnly={readOnly} onChange={(text) => change({ text })} />
        </div>
      </section>
    ),
    preview: (
      <div class="card">
        <Preview
          content={draft}
          page={template === null ? 'templates/new' : `templates/${encodeURIComponent(template.templateId)}`}
        >
          {(variables) =>
            template !== null &&
            may('sendTransactional') &&
            (draft === saved ? (
              <TestMessage
                templateId={template.templateId}
                stream={template.type === null ? null : template.type === 'marketing' ? 'mk' : 'tx'}
                variables={variables}
              />
            ) : (
              <p class="small">{t('test.save')}</p>
            ))
          }
        </Preview>
      </div>
    ),
  };
  return (
    <Page
      title={template === null ? t('templates.new') : template.name}
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
          {template !== null && may('deleteTemplate') && (
            <RowActions
              label={template.name}
              actions={[{ isDanger: true, label: t('templates.delete'), action: async () => remove() }]}
            />
          )}
        </>
      }
      {...(template === null ? {} : { curl: addressOf(PATH, { templateId: template.templateId }) })}
    >
      <Outcome of={outcome} />
      {readOnly && <p class="small">{t('messages.notAllowed')}</p>}
      {!hasDetailsTab && form}
      <TabList
        label={template === null ? t('templates.new') : template.name}
        tabs={[
          ...(hasDetailsTab ? [{ name: 'details' as const, text: t('campaigns.details') }] : []),
          { name: 'blocks', text: t('templates.blocks') },
          { name: 'code', text: t('templates.code') },
          ...(isBeside ? [] : [{ name: 'preview' as const, text: t('preview.title') }]),
        ]}
        chosen={isBeside && pane === 'preview' ? 'code' : pane}
        onChoose={setPane}
      >
        {/* The others keep their state. */}
        {hasDetailsTab && <div hidden={pane !== 'details'}>{form}</div>}
        <div hidden={pane !== 'blocks'}>{panes.blocks}</div>
        {isBeside ? (
          <div class="editor" hidden={pane === 'blocks'}>
            {panes.code}
            {panes.preview}
          </div>
        ) : (
          <>
            {(design === null || pane === 'code') && <div hidden={pane !== 'code'}>{panes.code}</div>}
            {(design === null || pane === 'preview') && (
              <div hidden={pane !== 'preview'}>{panes.preview}</div>
            )}
          </>
        )}
      </TabList>
      {template !== null && (
        <Versions
          change={`${template.updatedAt} ${saves}`}
          templateId={template.templateId}
          onRestore={
            readOnly
              ? null
              : ({ name, type = null, subject = '', html, text = null, design: earlier = null }) => {
                  change({ name, type, subject, html, text, design: earlier });
                  setUnfinished(0);
                  setRestored(restored + 1);
                  setPane(earlier === null ? 'code' : 'blocks');
                }
          }
        />
      )}
    </Page>
  );
}

interface NoBlocksProps {
  isReadOnly: boolean;
  onChoose: (start: Start) => void;
}

/** In place of the blocks of a template that is written as HTML: after a question, what they start with. */
function NoBlocks({ isReadOnly, onChoose }: NoBlocksProps) {
  const { t } = useTexts();
  const [isChoosing, setChoosing] = useState(false);
  if (isChoosing) return <StartChoice hasHtml={false} onChoose={onChoose} />;
  return (
    <div class="card">
      <Empty title={t('templates.noBlocks')} icon="code">
        {!isReadOnly && (
          <>
            <p>{t('templates.noBlocks.hint')}</p>
            <Confirmed
              label={t('templates.useBlocks')}
              question={t('templates.noBlocks.question')}
              action={async () => setChoosing(true)}
            />
          </>
        )}
      </Empty>
    </div>
  );
}

interface TextPartProps {
  text: string | null;
  readOnly: boolean;
  onChange: (text: string | null) => void;
}

/** The plain text, if it is not derived from the html. */
function TextPart({ text, readOnly, onChange }: TextPartProps) {
  const { t } = useTexts();
  return (
    <>
      <label class="check">
        <input
          class="tick"
          type="checkbox"
          checked={text !== null}
          disabled={readOnly}
          onChange={({ currentTarget: { checked } }) => onChange(checked ? '' : null)}
        />
        {t('templates.ownText')}
      </label>
      {text !== null && (
        <label class="field">
          {t('templates.text')}
          <textarea
            class="textarea"
            value={text}
            readOnly={readOnly}
            onInput={({ currentTarget: { value } }) => onChange(value)}
          />
        </label>
      )}
    </>
  );
}
