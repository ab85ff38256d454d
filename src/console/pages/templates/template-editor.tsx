import { useState } from 'preact/hooks';
import { renderDesign } from '../../../mail/blocks/render.ts';
import { VARIABLE } from '../../../mail/blocks/variable.ts';
import { type ApiError, operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { type Design, finishedPart } from '../../parts/block-editor/design.ts';
import { Button } from '../../parts/button.tsx';
import { CodeEditor } from '../../parts/code-editor/code-editor.tsx';
import { useHeldActions } from '../../parts/held-action.ts';
import { lazyPage } from '../../parts/lazy.tsx';
import { useMedia } from '../../parts/media.ts';
import { Preview } from '../../parts/preview/preview.tsx';
import { SourceFaults } from '../../parts/source-faults.tsx';
import { TabList } from '../../parts/tabs.tsx';
import { TestMessage } from '../../parts/test-message.tsx';
import { Confirmed, Empty, Failure, Outcome, Page, RowActions, Skeleton, useAction } from '../../parts.tsx';
import { useNavigation, useUnsavedWarning } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { type Start, StartChoice } from './start-choice.tsx';
import { deletionKey } from './template-list.tsx';
import { type VersionContent, Versions } from './versions.tsx';
import '../../parts/preview/preview.css';

/** The id of the form, whose button is in the head of the page. */
const FORM = 'template-form';
/** Windows without space for code and preview side by side, as in preview.css. */
const NARROW = '(width < 60rem)';
const PATH = '/web-setup/templates/{templateId}';

type Template = DataOf<typeof PATH>['template'];
/** The fields of the form; `subject` is '' if the template has none. */
type Draft = Pick<Template, 'name' | 'html' | 'syntax' | 'format'> & {
  subject: string;
  type: Template['type'] | null;
  text: string | null;
  /** The mail as blocks, of which `html` is made; null: the html is written by hand. */
  design: Design | null;
  /** With the format mjml, what `html` is compiled from when it is saved. */
  mjml: string;
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

const FIRST_MJML = `<mjml>
  <mj-body>
    <mj-section>
      <mj-column>
        <mj-text>Hello {{firstName|there}},</mj-text>
        <mj-text>…</mj-text>
        <mj-text>{{company_address_html}}{{unsubscribe_email_html}}</mj-text>
      </mj-column>
    </mj-section>
  </mj-body>
</mjml>
`;

/** A source of the simple syntax with its defaults in Liquid. */
function withLiquidDefaults(source: string): string {
  return source.replaceAll(VARIABLE, (written: string, name: string, fallback?: string) =>
    fallback === undefined ? written : `{{ ${name} | default: ${JSON.stringify(fallback.trim())} }}`,
  );
}

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
    return <Editor template={template} first={draftOf(template)} />;
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
    <Editor
      template={null}
      first={{
        name,
        type,
        subject,
        html: html ?? FIRST_HTML,
        text: null,
        design,
        syntax: 'simple',
        format: 'html',
        mjml: '',
      }}
    />
  );
}

function draftOf(content: Omit<VersionContent, 'version' | 'savedAt'>): Draft {
  const { name, html, type = null, subject = '', text = null, design = null, syntax, mjml } = content;
  const format = mjml === undefined ? 'html' : 'mjml';
  return { name, html, type, subject, text, design, syntax, format, mjml: mjml ?? '' };
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
  /** Of the last preview: lines that are not valid. */
  const [sourceError, setSourceError] = useState<ApiError | null>(null);
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
      const { html, mjml, syntax, format, ...fields } = draft;
      const subject = draft.subject === '' ? null : draft.subject;
      // The server makes the html of a design.
      const source =
        design !== null
          ? ({ syntax: 'simple', format: 'html' } as const)
          : { syntax, format, ...(format === 'mjml' ? { mjml } : { html: html === '' ? null : html }) };
      const body = { ...fields, subject, ...source };
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
    const source = { syntax: 'simple', format: 'html', html: html ?? draft.html } as const;
    change({ ...source, design: chosen, ...(draft.subject === '' ? { subject } : {}) });
    setRestored(restored + 1);
    setPane(chosen === null ? 'code' : 'blocks');
  };
  const isMjml = design === null && draft.format === 'mjml';
  /** The sources in both formats remain until one of them is saved. */
  const chooseSource = (chosen: Partial<Pick<Draft, 'syntax' | 'format'>>) => {
    const next = { ...draft, ...chosen };
    const { mjml, html, subject, text } = next;
    const isLiquid = next.syntax === 'liquid';
    const convert = (source: string) =>
      isLiquid && draft.syntax === 'simple' ? withLiquidDefaults(source) : source;
    const firstMjml = isLiquid ? withLiquidDefaults(FIRST_MJML) : FIRST_MJML;
    change({
      ...next,
      mjml: next.format === 'mjml' && mjml === '' ? firstMjml : convert(mjml),
      html: convert(html),
      subject: convert(subject),
      text: text === null ? null : convert(text),
    });
    setRestored(restored + 1);
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
          {design === null && <SourceChoice draft={draft} isReadOnly={readOnly} onChange={chooseSource} />}
          {isMjml ? (
            <CodeEditor
              key={`mjml ${restored}`}
              label={t('templates.format.mjml')}
              value={draft.mjml}
              readOnly={readOnly}
              onChange={(mjml) => change({ mjml })}
            />
          ) : (
            <CodeEditor
              key={design === null ? restored : draft.html}
              label={t('templates.code')}
              value={draft.html}
              readOnly={readOnly || design !== null}
              onChange={(html) => change({ html })}
            />
          )}
          <SourceFaults error={sourceError} format={draft.format} />
          <TextPart text={draft.text} readOnly={readOnly} onChange={(text) => change({ text })} />
        </div>
      </section>
    ),
    preview: (
      <div class="card">
        <Preview
          content={{ ...draft, mjml: isMjml ? draft.mjml : null }}
          onError={setSourceError}
          hasOwnSourceFaults={isBeside}
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
          { name: 'code', text: t(isMjml ? 'templates.format.mjml' : 'templates.code') },
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
              : (version) => {
                  const earlier = draftOf(version);
                  change(earlier);
                  setUnfinished(0);
                  setRestored(restored + 1);
                  setPane(earlier.design === null ? 'code' : 'blocks');
                }
          }
        />
      )}
    </Page>
  );
}

interface SourceChoiceProps {
  draft: Pick<Draft, 'syntax' | 'format'>;
  isReadOnly: boolean;
  onChange: (chosen: Partial<Pick<Draft, 'syntax' | 'format'>>) => void;
}

/** In which format the mail is written, and how its variables are. */
function SourceChoice({ draft: { syntax, format }, isReadOnly, onChange }: SourceChoiceProps) {
  const { t } = useTexts();
  return (
    <div class="search">
      <label class="field">
        {t('templates.format')}
        <select
          class="select"
          value={format}
          disabled={isReadOnly}
          onChange={({ currentTarget: { value } }) =>
            onChange({ format: value === 'mjml' ? 'mjml' : 'html' })
          }
        >
          <option value="html">{t('templates.code')}</option>
          <option value="mjml">{t('templates.format.mjml')}</option>
        </select>
      </label>
      <label class="field">
        {t('templates.syntax')}
        <select
          class="select"
          value={syntax}
          disabled={isReadOnly}
          onChange={({ currentTarget: { value } }) =>
            onChange({ syntax: value === 'liquid' ? 'liquid' : 'simple' })
          }
        >
          <option value="simple">{t('templates.syntax.simple')}</option>
          <option value="liquid">{t('templates.syntax.liquid')}</option>
        </select>
      </label>
    </div>
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
