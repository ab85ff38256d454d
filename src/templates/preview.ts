import type { Work } from '../core/concurrency/slices.ts';
import { complianceVariables, findMissingComplianceInSteps, missingInText } from '../mail/compliance.ts';
import { personalize } from '../mail/content.ts';
import { deriveTextInSteps } from '../mail/html/text-part.ts';
import {
  parseTemplateInSteps,
  renderTemplateInSteps,
  type Template,
  type TemplateKind,
  type TemplateSyntax,
} from '../mail/template.ts';
import type { Tables } from '../store/tables.ts';
import { complianceTexts } from './footer.ts';

/** Content as a recipient would see it: with values, the account's footer, and example links. */
export interface TemplatePreview {
  subject: string;
  html: string;
  text: string;
  /** Variables without a value; their names are shown in their place. */
  missing: string[];
  /** Compliance variables without which the content cannot be sent. */
  required: string[];
  /** Text in braces that is not a variable, which is often a mistake. */
  leftovers: string[];
  /** Size of the HTML. */
  bytes: number;
}

export interface PreviewInput {
  subject: string;
  /** '' if the message is text only. */
  html: string;
  /** Null: derived from the html. */
  text: string | null;
  /** Address of the sender. */
  from: string;
  /** Address of the recipient. */
  to: string;
  /** Language tag of the recipient; null: unknown. */
  language: string | null;
  values: Readonly<Record<string, unknown>>;
  /** `marks`: the content was rendered by Liquid. Default: variables. */
  syntax?: TemplateSyntax | undefined;
}

/** Characters of each part of a preview. */
export const MAX_PREVIEW = 1024 * 1024;
const MAX_RENDERED = 2 * MAX_PREVIEW;

/** Inserts values, the account's footer, and the names of variables that have no value. */
export function* renderPreviewInSteps(
  tables: Tables,
  accountId: string,
  content: PreviewInput,
): Work<TemplatePreview> {
  const { from } = content;
  const account = tables.accounts.get(accountId);
  const service = complianceVariables({
    account: {
      companyName: account?.company_name ?? null,
      // Sound: the store contains what the schema of addresses accepted.
      companyAddress: JSON.parse(account?.company_address ?? 'null'),
    },
    from,
    templates: complianceTexts(
      tables,
      accountId,
      {
        fromDomain: from.slice(from.lastIndexOf('@') + 1).toLowerCase(),
        groupId: null,
        html: content.html,
      },
      content.language,
    ),
  });
  const copy = {
    recipient: content.to,
    unsubscribeUrl: 'https://example.com/unsubscribe',
    preferencesUrl: 'https://example.com/preferences',
    viewUrl: 'https://example.com/view',
    reportAbuseUrl: 'https://example.com/report-abuse',
  };
  const missing = new Set<string>();
  const leftovers = new Set<string>();

  const parse = (source: string) => parseTemplateInSteps(source, content.syntax);

  function* part(kind: TemplateKind, template: Template): Work<string> {
    for (const { text } of template.foreign) leftovers.add(text);
    for (const leftover of template.leftovers) leftovers.add(leftover);
    const own = new Map(Object.entries(kind === 'html' ? service.html : service.text));
    // Each turn names at most MAX_PROBLEMS variables; the next one shows their names.
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      const values = Object.fromEntries(own);
      const rendered = yield* renderTemplateInSteps(template, kind, content.values, values, {
        limit: MAX_RENDERED,
      });
      if (typeof rendered === 'string') return personalize(rendered, copy, kind === 'html' ? 'html' : 'text');
      for (const { name, reason } of rendered) {
        if (reason === 'too-long') return '';
        missing.add(name);
        own.set(name, `{{${name}}}`);
      }
    }
    return '';
  }

  const htmlTemplate = yield* parse(content.html);
  const textTemplate = content.text === null ? null : yield* parse(content.text);
  const html = yield* part('html', htmlTemplate);
  const subject = yield* part('subject', yield* parse(content.subject));
  const text = textTemplate === null ? yield* deriveTextInSteps(html) : yield* part('text', textTemplate);
  const required =
    content.html === ''
      ? missingInText(textTemplate ?? { names: [] })
      : yield* findMissingComplianceInSteps(content.html, htmlTemplate);
  return {
    html,
    subject,
    text,
    missing: [...missing].filter((name) => !required.some((other) => other === name)),
    required,
    leftovers: [...leftovers],
    bytes: Buffer.byteLength(html),
  };
}

/** Enough for a thousand variables without a value. */
const MAX_TURNS = 11;
