import { isServiceVariable } from '../mail/template.ts';
import type { TemplateItem } from './exports.ts';
import { CONTENT_BLOCK, convertGoTemplate } from './go-template.ts';
import { convertHandlebars, type HandlebarsDialect } from './handlebars.ts';
import { type ConversionFault, type Converted, syntaxOf, writeParts } from './template-parts.ts';

/* Converts the templates of an export: to one of ours, or to what has no equivalent, with its place. */

const PARTS = ['subject', 'html', 'text'] as const;
type PartName = (typeof PARTS)[number];

export interface TemplateFault extends ConversionFault {
  /** The part that has it. */
  field: PartName;
}

/** A template in our syntax. */
export interface MovedTemplate {
  syntax: 'simple' | 'liquid';
  subject: string | null;
  html: string | null;
  text: string | null;
  /** Sentences about what differs. */
  notes: string[];
}

/** `layouts`: those of the same export, by alias. */
export function convertTemplate(
  item: TemplateItem,
  layouts: ReadonlyMap<string, TemplateItem>,
): MovedTemplate | TemplateFault[] | string {
  if (item.fault !== undefined) return item.fault;
  if (item.html === null && item.text === null) return 'it has neither html nor text';
  const layout = item.layout ? layouts.get(item.layout) : undefined;
  if (item.layout && layout === undefined)
    return `its layout ${item.layout} is not in these files: export it, too`;
  const faults: TemplateFault[] = [];
  const converted: Partial<Record<PartName, Converted>> = {};
  for (const field of PARTS) {
    const source = item[field];
    if (source === null) continue;
    const inner = convert(item, source);
    const around = field === 'subject' ? null : (layout?.[field] ?? null);
    const whole = around === null ? inner : convert(item, around, inner);
    converted[field] = whole;
    faults.push(...inner.faults.map((fault) => ({ ...fault, field })));
    if (whole !== inner)
      faults.push(
        ...whole.faults.map((fault) => ({
          ...fault,
          field,
          reason: `${fault.reason} (layout ${item.layout})`,
        })),
      );
  }
  if (faults.length > 0) return faults;
  const all = Object.values(converted).flatMap(({ parts }) => parts);
  // A partial is Liquid.
  const syntax = item.isLayout === true ? 'liquid' : syntaxOf(all);
  const written = (field: PartName) => {
    const part = converted[field];
    return part === undefined ? null : writeParts(part.parts, syntax);
  };
  const sources = PARTS.map((field) => item[field] ?? '').join(' ');
  const names = new Set(all.flatMap((part) => ('value' in part ? [part.value] : [])));
  const notes = [...names]
    .filter((name) => isServiceVariable(name) && new RegExp(`\\b${name}\\b`).test(sources))
    .map((name) => `{{${name}}} is set by this service: the value of a send is not used`);
  return { syntax, subject: written('subject'), html: written('html'), text: written('text'), notes };
}

function convert({ language, fallbacks }: TemplateItem, source: string, content?: Converted): Converted {
  if (language === 'go') return convertGoTemplate(source);
  const dialect: HandlebarsDialect = language;
  return convertHandlebars(source, dialect, {
    ...(fallbacks === undefined ? {} : { fallbacks }),
    ...(content === undefined ? {} : { content }),
  });
}

/** The name of a partial for a layout: its names have fewer characters. */
export function partialName(title: string): string {
  const name = title
    .normalize('NFKD')
    .replaceAll(/[^A-Za-z0-9_-]+/g, ' ')
    .trim()
    .replaceAll(' ', '-')
    .slice(0, 100);
  return name === '' ? CONTENT_BLOCK : name;
}
