import { useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { CodeEditor } from '../../parts/code-editor/code-editor.tsx';
import { useHeldActions } from '../../parts/held-action.ts';
import { Preview } from '../../parts/preview/preview.tsx';
import { TestMessage } from '../../parts/test-message.tsx';
import { Loaded, Outcome, Page, useAction } from '../../parts.tsx';
import { useNavigation, useUnsavedWarning } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { deletionKey } from './template-list.tsx';
import { Versions } from './versions.tsx';
import '../../parts/preview/preview.css';

const PATH = '/web-setup/templates/{templateId}';

type Template = DataOf<typeof PATH>['template'];
/** The fields of the form; `subject` is '' if the template has none. */
type Draft = Pick<Template, 'name' | 'html'> & {
  subject: string;
  type: Template['type'] | null;
  text: string | null;
};

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

/** The code of a template, and next to it a preview for a contact. */
export function TemplatePage({ templateId }: { templateId: string }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const isNew = templateId === 'new';
  const data = useOperation(isNew ? null : PATH, { templateId });
  const title = isNew ? t('templates.new') : (data.value?.template.name ?? t('page.templates'));
  return (
    <Page
      title={title}
      question={t('templates.question')}
      {...(isNew ? {} : { curl: addressOf(PATH, { templateId }) })}
    >
      <p>
        <a href={href('templates')}>{t('app.back')}</a>
      </p>
      {isNew ? (
        <Editor template={null} />
      ) : (
        <Loaded data={data}>{({ template }) => <Editor template={template} />}</Loaded>
      )}
    </Page>
  );
}

/** `template`: null for a new one. Later versions of it, after events of the account, do not replace the draft. */
function Editor({ template }: { template: Template | null }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const [draft, setDraft] = useState<Draft>({
    name: template?.name ?? '',
    type: template?.type ?? null,
    subject: template?.subject ?? '',
    html: template?.html ?? FIRST_HTML,
    text: template?.text ?? null,
  });
  const [saved, setSaved] = useState(draft);
  const [saves, setSaves] = useState(0);
  /** Number of restored versions: each is shown by a new editor. */
  const [restored, setRestored] = useState(0);
  const [firstText] = useState(() => textOfCreation(template?.templateId));
  const { outcome, run } = useAction(
    firstText === null ? null : { text: firstText, running: false, failed: false },
  );
  const { hold } = useHeldActions(template, () => {});
  const readOnly = !may(template === null ? 'createTemplate' : 'updateTemplate');
  const change = (fields: Partial<Draft>) => setDraft((last) => ({ ...last, ...fields }));
  useUnsavedWarning(draft !== saved, t('templates.unsaved'));

  const save = () =>
    run(async () => {
      const body = {
        ...draft,
        subject: draft.subject === '' ? null : draft.subject,
        html: draft.html === '' ? null : draft.html,
      };
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
  return (
    <>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <fieldset class="plain" disabled={readOnly}>
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
            {!readOnly && (
              <div class="actions">
                <button type="submit" class="button primary" disabled={outcome?.running}>
                  {t('me.save')}
                </button>
              </div>
            )}
          </div>
        </fieldset>
        <Outcome of={outcome} />
      </form>
      {readOnly && <p class="small">{t('messages.notAllowed')}</p>}
      <div class="editor">
        <section aria-label={t('templates.code')}>
          <h2>{t('templates.code')}</h2>
          <CodeEditor
            key={restored}
            label={t('templates.code')}
            value={draft.html}
            readOnly={readOnly}
            onChange={(html) => change({ html })}
          />
          <TextPart text={draft.text} readOnly={readOnly} onChange={(text) => change({ text })} />
        </section>
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
      {template !== null && (
        <Versions
          change={`${template.updatedAt} ${saves}`}
          templateId={template.templateId}
          onRestore={
            readOnly
              ? null
              : ({ name, type = null, subject = '', html, text = null }) => {
                  change({ name, type, subject, html, text });
                  setRestored(restored + 1);
                }
          }
        />
      )}
      {template !== null && may('deleteTemplate') && (
        <button
          class="button danger"
          type="button"
          onClick={() => {
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
          }}
        >
          {t('templates.delete')}
        </button>
      )}
    </>
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
