import { escapeHtml } from '../html/escape.ts';
import { darkBackground, readableOn } from './colors.ts';
import type { Block, BlockOf, Design, Theme } from './design.ts';
import {
  buttonColors,
  EDGE,
  FONT_STACKS,
  footerBackground,
  HEADINGS,
  LEGAL_COLOR,
  linkColorOn,
  NETWORK_NAMES,
  type Padding,
  type Position,
  paddingOf,
  textColorOn,
} from './look.ts';
import { inlineHtml, plainText, richTextHtml, type TextStyle, textHtml } from './rich-text.ts';
import { createDarkColors, type DarkColors, NARROW_EDGE, styleElements } from './style-sheet.ts';

/*
 * Converts a design to the HTML of a mail template. Pure: the same design has the same bytes.
 *
 * Mail clients support less of CSS than browsers. Layout is tables with widths in attributes; all styles are inline. What only
 * Outlook for Windows reads stands in conditional comments, as it renders with Word: tables around the content and the columns
 * ("ghost tables", for `max-width` and `inline-block`, which Word ignores), and buttons in VML. Rounded corners are the only
 * thing that it does not show.
 *
 * The footer has the variables that every mail must show (compliance.ts); a design without one ends with a default footer.
 */

const RIGHT_TO_LEFT: ReadonlySet<string> = new Set([
  'ar',
  'ckb',
  'dv',
  'fa',
  'he',
  'ps',
  'sd',
  'ug',
  'ur',
  'yi',
]);

/** Where a block is. */
interface Place {
  readonly theme: Theme;
  readonly colors: DarkColors;
  readonly isRtl: boolean;
  /** Pixels between the edges of the container or column. */
  readonly width: number;
  readonly background: string;
  readonly darkBackground: string;
  readonly isColumn: boolean;
}

/** The HTML of a design, to be stored as that of a template. */
export function renderDesign(design: Design): string {
  const { theme, blocks } = design;
  const language = design.language ?? 'en';
  const isRtl = RIGHT_TO_LEFT.has(language.split('-', 1)[0]?.toLowerCase() ?? '');
  const direction = isRtl ? 'rtl' : 'ltr';
  const colors = createDarkColors();
  const surface = theme.surface ?? '#ffffff';
  const page = placeOn(
    { theme, colors, isRtl, width: theme.width, isColumn: false },
    theme.background,
    'page',
  );
  const card = placeOn(page, surface, 'surface');

  const last = blocks.at(-1);
  const footer: BlockOf<'footer'> | null =
    last?.type === 'footer'
      ? last
      : blocks.some(({ type }) => type === 'footer')
        ? null
        : { id: 'footer', type: 'footer' };
  const inside = footer === last ? blocks.slice(0, -1) : blocks;
  const rows = inside.map((block, index) =>
    row(block, card, { isFirst: index === 0, isLast: index === inside.length - 1, isColumn: false }),
  );
  const container = (place: Place, content: string, attributes: string, style: string) =>
    table(
      `align="center" width="100%" ${attributes}`,
      `width:100%;max-width:${place.width}px;margin:0 auto;${style}`,
      content,
    );
  const font = FONT_STACKS[theme.font];
  const cardHtml =
    rows.length === 0
      ? ''
      : container(
          card,
          rows.join('\n'),
          `class="card ${colors.background(surface, 'surface')}" bgcolor="${surface}"`,
          `border-collapse:separate;border-radius:12px;overflow:hidden;background-color:${surface};`,
        );
  const body = ghost(
    theme.width,
    isRtl,
    [cardHtml, footer === null ? '' : container(page, footerRow(footer, page), '', '')].join('\n'),
  );
  const pageClass = colors.background(theme.background, 'page');
  const title = blocks.find((block) => block.type === 'heading');

  return `<!DOCTYPE html>
<html lang="${language}" dir="${direction}" xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="x-apple-disable-message-reformatting">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${escapeHtml((title && plainText(title.content)) || 'Message')}</title>
<!--[if mso]><noscript><xml><o:OfficeDocumentSettings><o:AllowPNG/><o:PixelsPerInch>96</o:PixelsPerInch></o:OfficeDocumentSettings></xml></noscript><style>table{border-collapse:collapse;mso-table-lspace:0pt;mso-table-rspace:0pt}</style><![endif]-->
${styleElements(colors, darkLegal(footer, page))}
</head>
<body class="${pageClass}" style="margin:0;padding:0;width:100%;word-break:break-word;-webkit-text-size-adjust:100%;-ms-text-size-adjust:100%;background-color:${theme.background}">
${preheaderHtml(design.preheader ?? '')}<div role="article" aria-roledescription="email" lang="${language}" dir="${direction}" style="font-family:${font};font-size:16px;line-height:26px">
${table(
  `width="100%" class="${pageClass}" bgcolor="${theme.background}"`,
  `width:100%;background-color:${theme.background}`,
  `<tr><td align="center" class="page" style="padding:32px 12px">\n${body}\n</td></tr>`,
)}
</div>
</body>
</html>
`;
}

function placeOn(
  outer: Omit<Place, 'background' | 'darkBackground'>,
  background: string,
  layer: 'page' | 'surface' | 'block',
): Place {
  return { ...outer, background, darkBackground: darkBackground(background, layer) };
}

/** Clients show what follows a short preview text; these characters keep it empty. */
const PREHEADER_LENGTH = 110;
function preheaderHtml(text: string): string {
  if (text.trim() === '') return '';
  const filler = '&#847;&zwnj;&nbsp;'.repeat(Math.max(0, PREHEADER_LENGTH - text.length) >> 1);
  return `<div style="display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;mso-hide:all"><span>${textHtml(text)}</span>${filler}</div>\n`;
}

function table(attributes: string, style: string, rows: string): string {
  return `<table role="presentation" border="0" cellpadding="0" cellspacing="0" ${attributes} style="${style}">${rows}</table>`;
}

/** For Outlook for Windows: a table of a fixed width. */
function ghost(width: number, isRtl: boolean, content: string): string {
  const dir = isRtl ? ' dir="rtl"' : '';
  return `<!--[if mso]><table role="presentation"${dir} align="center" border="0" cellpadding="0" cellspacing="0" width="${width}"><tr><td><![endif]-->
${content}
<!--[if mso]></td></tr></table><![endif]-->`;
}

function alignOf(
  align: 'left' | 'center' | 'right' | undefined,
  { isRtl }: Place,
): 'left' | 'center' | 'right' {
  return align ?? (isRtl ? 'right' : 'left');
}

function fontStyle({ theme }: Place, size: number, line: number): string {
  return `font-family:${FONT_STACKS[theme.font]};font-size:${size}px;line-height:${line}px;mso-line-height-rule:exactly;`;
}

/** A row of the container or column with one block. */
function row(block: Block, outer: Place, position: Position): string {
  const padding = paddingOf(block, position);
  const place = block.background === undefined ? outer : placeOn(outer, block.background, 'block');
  const inner = { ...place, width: Math.max(1, place.width - padding.left - padding.right) };
  if (block.type === 'footer') return footerRow(block, outer);
  if (block.type === 'columns') return columnsRow(block, inner, padding);
  const align = 'align' in block ? alignOf(block.align, place) : alignOf(undefined, place);
  return cell(block, place, padding, align, blockHtml(block, inner, align));
}

/** Whether narrow screens have less space at the sides. */
function hasEdge({ left, right }: Padding): boolean {
  return left > NARROW_EDGE || right > NARROW_EDGE;
}

function cell(
  block: Block,
  { colors, isColumn }: Place,
  padding: Padding,
  align: string,
  html: string,
  { style = '', isEdge = hasEdge(padding) }: { style?: string; isEdge?: boolean } = {},
): string {
  const { background } = block;
  const { top, right, bottom, left } = padding;
  const classes = [
    ...(isColumn || !isEdge ? [] : ['edge']),
    ...(background === undefined ? [] : [colors.background(background, 'block')]),
  ];
  const attributes = [
    `align="${align}"`,
    ...(classes.length === 0 ? [] : [`class="${classes.join(' ')}"`]),
    ...(background === undefined ? [] : [`bgcolor="${background}"`]),
  ].join(' ');
  const color = background === undefined ? '' : `background-color:${background};`;
  return `<tr><td ${attributes} style="padding:${top}px ${right}px ${bottom}px ${left}px;text-align:${align};${color}${style}">${html}</td></tr>`;
}

function blockHtml(
  block: Exclude<Block, { type: 'columns' | 'footer' }>,
  place: Place,
  align: 'left' | 'center' | 'right',
): string {
  switch (block.type) {
    case 'heading':
      return headingHtml(block, place);
    case 'text':
      return textBlockHtml(block, place);
    case 'button':
      return buttonHtml(block, place, align);
    case 'image':
      return imageHtml(block, place, align);
    case 'divider':
      return dividerHtml(block, place);
    case 'spacer':
      return table(
        'width="100%"',
        'width:100%',
        `<tr><td height="${block.height}" style="height:${block.height}px;font-size:1px;line-height:${block.height}px;mso-line-height-rule:exactly">&nbsp;</td></tr>`,
      );
    default:
      return socialHtml(block, place);
  }
}

/** Attributes of texts of a color in a place. */
function colored(
  { colors, darkBackground: dark }: Place,
  color: string,
  style: string,
  className = '',
): string {
  return `class="${`${className} ${colors.text(color, dark)}`.trim()}" style="${style}color:${color}"`;
}

function textStyleOf(
  place: Place,
  { color, size, align }: { color: string; size: number; align: string },
): TextStyle {
  const line = Math.round(size * 1.6);
  const font = fontStyle(place, size, line);
  const side = place.isRtl ? 'right' : 'left';
  return {
    link: colored(place, linkColorOn(place.background, place.theme), 'text-decoration:underline;'),
    colored: (own) => colored(place, own, ''),
    block: ({ below, isList = false }) =>
      colored(
        place,
        color,
        `margin:0 0 ${below}px 0;${isList ? `margin-${side}:24px;padding:0;text-align:${side};` : `text-align:${align};`}${font}`,
      ),
    item: 'style="margin:0 0 6px 0"',
  };
}

function headingHtml({ level, content, color, align }: BlockOf<'heading'>, place: Place): string {
  const { size, line } = HEADINGS[level];
  const className = level === 1 ? 'h1' : '';
  const own = color ?? textColorOn(place.background, place.theme);
  const textAlign = alignOf(align, place);
  const style = `margin:0;padding:0;text-align:${textAlign};font-weight:700;${level === 1 ? 'letter-spacing:-0.4px;' : ''}${fontStyle(place, size, line)}`;
  const inner = textStyleOf(place, { color: own, size, align: textAlign });
  return `<h${level} ${colored(place, own, style, className)}>${inlineHtml(content, inner) || '&nbsp;'}</h${level}>`;
}

function textBlockHtml({ content, color, align, size = 16 }: BlockOf<'text'>, place: Place): string {
  const style = textStyleOf(place, {
    color: color ?? textColorOn(place.background, place.theme),
    size,
    align: alignOf(align, place),
  });
  return richTextHtml(content, style);
}

const BUTTON = { height: 48, size: 16, side: 28 };

/**
 * Word draws VML at a fixed width: an estimate from the characters of the text with the defaults of its variables. Wide scripts have
 * characters as wide as they are high.
 */
function buttonWidth(text: string, available: number): number {
  const shown = text.replaceAll(/\{\{([^{}]*)\}\}/g, (_, variable: string) => {
    const bar = variable.indexOf('|');
    return (bar < 0 ? '' : variable.slice(bar + 1)) || 'xxxxxxxxxx';
  });
  const wide =
    shown.match(
      /[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef]|\p{Extended_Pictographic}/gu,
    )?.length ?? 0;
  const estimate = Math.ceil((shown.length - wide) * 9.6 + wide * 17) + 2 * BUTTON.side;
  return Math.min(estimate, available);
}

function buttonHtml(block: BlockOf<'button'>, place: Place, align: string): string {
  const { text, href, radius = 6, fullWidth = false } = block;
  const { theme, colors } = place;
  const { background, text: ink } = buttonColors(block, theme);
  const address = textHtml(href);
  const label = textHtml(text);
  const width = fullWidth ? place.width : buttonWidth(text, place.width);
  const arc = Math.min(50, Math.round((100 * radius) / BUTTON.height));
  const font = FONT_STACKS[theme.font];
  // The color stays in dark mode. A class with the same color prevents clients from changing it.
  const backgroundClass = colors.button(background);
  const inkClass = colors.ink(ink);
  const vml = `<!--[if mso]><v:roundrect xmlns:v="urn:schemas-microsoft-com:vml" xmlns:w="urn:schemas-microsoft-com:office:word" href="${address}" style="height:${BUTTON.height}px;v-text-anchor:middle;width:${width}px" arcsize="${arc}%" stroke="f" fillcolor="${background}"><w:anchorlock/><center style="color:${ink};font-family:${font};font-size:${BUTTON.size}px;font-weight:bold">${label}</center></v:roundrect><![endif]-->`;
  const link = `<a href="${address}" class="${inkClass}" style="display:${fullWidth ? 'block' : 'inline-block'};padding:12px ${BUTTON.side}px;text-align:center;text-decoration:none;font-weight:700;${fontStyle(place, BUTTON.size, 24)}color:${ink};box-sizing:border-box">${label}</a>`;
  const html = table(
    `align="${align}" class="btn"${fullWidth ? ' width="100%"' : ''}`,
    `border-collapse:separate;${fullWidth ? 'width:100%' : ''}`,
    `<tr><td align="center" class="${backgroundClass}" bgcolor="${background}" style="border-radius:${radius}px;background-color:${background}">${link}</td></tr>`,
  );
  return `${vml}<!--[if !mso]><!-->${html}<!--<![endif]-->`;
}

const AUTO_MARGINS = { left: '0 auto 0 0', center: '0 auto', right: '0 0 0 auto' } as const;

function imageHtml(
  { src, alt, width, height, href, radius }: BlockOf<'image'>,
  place: Place,
  align: 'left' | 'center' | 'right',
): string {
  const shown = Math.min(width, place.width);
  const scaled = Math.max(1, Math.round((height * shown) / width));
  const rounded = radius === undefined ? '' : `border-radius:${radius}px;`;
  const style = `display:block;width:100%;max-width:${shown}px;height:auto;margin:${AUTO_MARGINS[align]};border:0;outline:none;text-decoration:none;${rounded}${fontStyle(place, 14, 20)}color:${textColorOn(place.background, place.theme)}`;
  const image = `<img src="${textHtml(src)}" alt="${textHtml(alt)}" width="${shown}" height="${scaled}" style="${style}">`;
  return href === undefined ? image : `<a href="${textHtml(href)}" style="text-decoration:none">${image}</a>`;
}

function dividerHtml({ color = '#e3e5e8', thickness = 1 }: BlockOf<'divider'>, { colors }: Place): string {
  return table(
    'width="100%"',
    'width:100%',
    `<tr><td class="${colors.line(color)}" style="border-top:${thickness}px solid ${color};font-size:1px;line-height:1px;mso-line-height-rule:exactly">&nbsp;</td></tr>`,
  );
}

/** Names in place of icons: most clients block images of unknown senders. */
function socialHtml({ links, color, align }: BlockOf<'social'>, place: Place): string {
  const own = color ?? linkColorOn(place.background, place.theme);
  const attributes = colored(place, own, 'text-decoration:none;font-weight:600;');
  const items = links.map(
    ({ network, href, label }) =>
      `<a href="${textHtml(href)}" ${attributes}>${label === undefined ? NETWORK_NAMES[network] : textHtml(label)}</a>`,
  );
  const text = textStyleOf(place, {
    color: textColorOn(place.background, place.theme),
    size: 14,
    align: alignOf(align, place),
  });
  return `<p ${text.block({ below: 0 })}>${items.join(' &nbsp;&middot;&nbsp; ')}</p>`;
}

function columnsRow(block: BlockOf<'columns'>, inner: Place, padding: Padding): string {
  return block.stack === false ? cellsRow(block, inner, padding) : stackedRow(block, inner, padding);
}

/** The content of a column. */
function columnHtml({ blocks }: BlockOf<'columns'>['columns'][number], outer: Place, width: number): string {
  const place: Place = { ...outer, width: Math.max(1, width), isColumn: true };
  const rows = blocks.map((one, at) =>
    row(one, place, { isFirst: at === 0, isLast: at === blocks.length - 1, isColumn: true }),
  );
  return table('width="100%"', 'width:100%', rows.length === 0 ? '<tr><td>&nbsp;</td></tr>' : rows.join(''));
}

/** Columns that stay next to each other: cells of a table. */
function cellsRow(block: BlockOf<'columns'>, inner: Place, padding: Padding): string {
  const { columns, gap = 24, split = '1:1', valign = 'top' } = block;
  const widths = columnWidths(inner.width, columns.length, split);
  const half = Math.floor(gap / 2);
  const cells = columns.map((column, index) => {
    const width = widths[index] ?? 1;
    const before = index === 0 ? 0 : half;
    const after = index === columns.length - 1 ? 0 : half;
    const [left, right] = inner.isRtl ? [after, before] : [before, after];
    const share = Math.round((100 * width) / inner.width);
    return `<td width="${share}%" valign="${valign}" style="padding:0 ${right}px 0 ${left}px;vertical-align:${valign}">${columnHtml(column, inner, width - left - right)}</td>`;
  });
  const html = table('width="100%"', 'width:100%', `<tr>${cells.join('')}</tr>`);
  return cell(block, inner, padding, alignOf(undefined, inner), html);
}

/** Columns that narrow screens show one below the other. */
function stackedRow(block: BlockOf<'columns'>, inner: Place, padding: Padding): string {
  const { columns, gap = 24, split = '1:1', valign = 'top' } = block;
  const half = Math.floor(gap / 2);
  // Half of the gap is on each side of a column, also outside: the texts of columns align with those of other blocks.
  const outside = {
    ...padding,
    left: Math.max(0, padding.left - half),
    right: Math.max(0, padding.right - half),
  };
  const total = inner.width + (padding.left - outside.left) + (padding.right - outside.right);
  const widths = columnWidths(total, columns.length, split);
  const { isRtl } = inner;
  const direction = isRtl ? ' dir="rtl"' : '';
  const cells = columns.map((column, index) => {
    const width = widths[index] ?? 1;
    const content = columnHtml(column, inner, width - 2 * half);
    return `<!--[if mso]><td width="${width}" valign="${valign}"><![endif]--><div class="col" style="display:inline-block;width:100%;max-width:${width}px;vertical-align:${valign}">${table(
      'width="100%"',
      'width:100%',
      `<tr><td class="in" style="padding:8px ${half}px">${content}</td></tr>`,
    )}</div><!--[if mso]></td><![endif]-->`;
  });
  const html = `<!--[if mso]><table role="presentation"${direction} border="0" cellpadding="0" cellspacing="0" width="${total}"><tr><![endif]-->${cells.join('')}<!--[if mso]></tr></table><![endif]-->`;
  return cell(block, inner, outside, alignOf(undefined, inner), html, {
    style: 'font-size:0;',
    isEdge: hasEdge(padding),
  });
}

function columnWidths(total: number, count: number, split: '1:1' | '1:2' | '2:1'): number[] {
  const third = Math.floor(total / 3);
  if (count === 3) return [third, third, third];
  if (split === '1:2') return [third, total - third];
  if (split === '2:1') return [total - third, third];
  return [Math.floor(total / 2), Math.floor(total / 2)];
}

/** What the default texts are displayed on: a light background. */
function footerPlace(block: BlockOf<'footer'>, outer: Place): Place {
  const own = footerBackground(block, outer.background);
  return own === outer.background && block.background === undefined ? outer : placeOn(outer, own, 'block');
}

/** The color of the default texts in dark mode. */
function darkLegal(footer: BlockOf<'footer'> | null, page: Place): string {
  return readableOn(
    '#808080',
    footer === null ? page.darkBackground : footerPlace(footer, page).darkBackground,
  );
}

function footerRow(block: BlockOf<'footer'>, outer: Place): string {
  const place = footerPlace(block, outer);
  const background = place === outer ? undefined : place.background;
  const padding = block.padding ?? { top: 24, right: EDGE, bottom: 24, left: EDGE };
  const align = block.align ?? 'center';
  const style = textStyleOf(place, { color: LEGAL_COLOR, size: 13, align });
  const note = inlineHtml(block.content ?? [], style);
  const legal = [
    '{{company_address_html}}',
    '{{unsubscribe_email_html}}',
    ...(block.reportAbuse === true ? ['{{report_abuse_email_html}}'] : []),
  ];
  const html =
    (note === '' ? '' : `<p ${style.block({ below: 12 })}>${note}</p>`) +
    `<div class="legal" style="text-align:${align};${fontStyle(place, 12, 20)}color:${LEGAL_COLOR}">${legal.join('\n')}</div>`;
  return cell({ ...block, background }, place, padding, align, html);
}
