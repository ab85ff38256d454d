import { useState } from 'preact/hooks';
import { buttonColors, linkColorOn, NETWORK_NAMES, paddingOf } from '../../../mail/blocks/look.ts';
import { useTexts } from '../../texts.ts';
import { Field } from '../field.tsx';
import { Icon } from '../icon/icon.tsx';
import { BlockAddress } from './address-field.tsx';
import type { Block, BlockOf, Design, Theme } from './design.ts';
import { type Changes, useEditing, useFieldChange, withChanges } from './editing.ts';
import { AlignField, Choice, ColorField, NumberField, Pair, Tick } from './fields.tsx';
import { ImageSettings } from './image-settings.tsx';
import { BLOCK_ICONS } from './insert-menu.tsx';
import { findBlock, listAt, placeOf, withColumnCount } from './model.ts';
import { changeVariable, chosenVariable } from './rich-text/commands.ts';
import { cleanDefault } from './rich-text/schema.ts';
import { safeAddress } from './safe-address.ts';

/** The settings of the block that is chosen, or of the whole mail. */
export function Settings() {
  const { t } = useTexts();
  const { design, chosen } = useEditing();
  const [view, setView] = useState<'block' | 'mail'>('block');
  const block = findBlock(design, chosen);
  const shown = block === null ? 'mail' : view;
  return (
    <section class="blocks-settings" aria-label={t('blocks.settings')}>
      <fieldset class="segments settings-views">
        <legend class="unseen">{t('blocks.settings')}</legend>
        {(['block', 'mail'] as const).map((name) => (
          <label class="segment" key={name}>
            <input
              class="segment-input"
              type="radio"
              name="blocks-settings"
              checked={shown === name}
              disabled={name === 'block' && block === null}
              onChange={() => setView(name)}
            />
            {t(`blocks.settings.${name}`)}
          </label>
        ))}
      </fieldset>
      {shown === 'mail' || block === null ? (
        <MailSettings />
      ) : (
        <>
          <h2 class="settings-title">
            <Icon name={BLOCK_ICONS[block.type]} />
            {t(`blocks.type.${block.type}`)}
          </h2>
          <VariableSettings />
          <BlockSettings key={block.id} block={block} />
        </>
      )}
    </section>
  );
}

/** The variable that is chosen in the text. */
function VariableSettings() {
  const { t } = useTexts();
  const { text, isReadOnly } = useEditing();
  const variable = text === null ? null : chosenVariable(text.state);
  if (text === null || variable === null) return null;
  return (
    <div class="settings-part">
      <Field
        label={t('blocks.variable.default', { name: variable.name })}
        hint={t('blocks.variable.default.hint')}
        isOptional
      >
        {(control) => (
          <input
            {...control}
            class="input"
            maxLength={200}
            autocomplete="off"
            readOnly={isReadOnly}
            value={variable.fallback}
            onInput={({ currentTarget: field }) => {
              const fallback = cleanDefault(field.value);
              field.value = fallback;
              changeVariable(text, { ...variable, fallback });
            }}
          />
        )}
      </Field>
    </div>
  );
}

function BlockSettings({ block }: { block: Block }) {
  return (
    <>
      <OwnSettings block={block} />
      {block.type !== 'spacer' && <SpaceSettings block={block} />}
    </>
  );
}

function OwnSettings({ block }: { block: Block }) {
  switch (block.type) {
    case 'heading':
      return <HeadingSettings block={block} />;
    case 'text':
      return <TextSettings block={block} />;
    case 'button':
      return <ButtonSettings block={block} />;
    case 'image':
      return <ImageSettings block={block} />;
    case 'divider':
      return <DividerSettings block={block} />;
    case 'spacer':
      return <SpacerSettings block={block} />;
    case 'social':
      return <SocialSettings block={block} />;
    case 'columns':
      return <ColumnsSettings block={block} />;
    default:
      return <FooterSettings block={block} />;
  }
}

function HeadingSettings({ block }: { block: BlockOf<'heading'> }) {
  const { t } = useTexts();
  const { design } = useEditing();
  const set = useFieldChange(block);
  return (
    <>
      <Choice
        label={t('blocks.level')}
        value={block.level}
        options={([1, 2, 3] as const).map((value) => ({ value, text: t(`blocks.level.${value}`) }))}
        onChange={(level) => set({ level })}
      />
      <AlignField value={block.align} onChange={(align) => set({ align })} />
      <ColorField
        label={t('blocks.color.text')}
        value={block.color}
        standard={design.theme.text}
        onChange={(color) => set({ color })}
      />
    </>
  );
}

const SIZES = [13, 14, 16, 18, 20, 24];

function TextSettings({ block }: { block: BlockOf<'text'> }) {
  const { t } = useTexts();
  const { design, isReadOnly } = useEditing();
  const set = useFieldChange(block);
  const { size = 16 } = block;
  return (
    <>
      <AlignField value={block.align} onChange={(align) => set({ align })} />
      <Field label={t('blocks.size')}>
        {(control) => (
          <select
            {...control}
            class="select"
            disabled={isReadOnly}
            value={size}
            onChange={({ currentTarget: { value } }) => set({ size: Number(value) })}
          >
            {[...new Set([...SIZES, size])]
              .sort((a, b) => a - b)
              .map((each) => (
                <option key={each} value={each}>
                  {each} px
                </option>
              ))}
          </select>
        )}
      </Field>
      <ColorField
        label={t('blocks.color.text')}
        value={block.color}
        standard={design.theme.text}
        onChange={(color) => set({ color })}
      />
    </>
  );
}

function ButtonSettings({ block }: { block: BlockOf<'button'> }) {
  const { t } = useTexts();
  const { design } = useEditing();
  const set = useFieldChange(block);
  const standard = buttonColors({ ...block, textColor: undefined }, design.theme);
  return (
    <>
      <BlockAddress label={t('blocks.link.address')} value={block.href} onChange={(href) => set({ href })} />
      <AlignField value={block.align} onChange={(align) => set({ align })} />
      <Tick
        label={t('blocks.fullWidth')}
        isOn={block.fullWidth === true}
        onChange={(fullWidth) => set({ fullWidth })}
      />
      <ColorField
        label={t('blocks.color.button')}
        value={block.color}
        standard={design.theme.accent}
        onChange={(color) => set({ color })}
      />
      <ColorField
        label={t('blocks.color.text')}
        value={block.textColor}
        standard={standard.text}
        onChange={(textColor) => set({ textColor })}
      />
      <NumberField
        label={t('blocks.radius')}
        value={block.radius ?? 6}
        min={0}
        max={30}
        onChange={(radius) => set({ radius })}
      />
    </>
  );
}

function DividerSettings({ block }: { block: BlockOf<'divider'> }) {
  const { t } = useTexts();
  const set = useFieldChange(block);
  return (
    <>
      <ColorField
        label={t('blocks.color.line')}
        value={block.color}
        standard="#e3e5e8"
        onChange={(color) => set({ color })}
      />
      <NumberField
        label={t('blocks.thickness')}
        value={block.thickness ?? 1}
        min={1}
        max={8}
        onChange={(thickness) => set({ thickness })}
      />
    </>
  );
}

function SpacerSettings({ block }: { block: BlockOf<'spacer'> }) {
  const { t } = useTexts();
  const set = useFieldChange(block);
  return (
    <NumberField
      label={t('blocks.height')}
      value={block.height}
      min={4}
      max={120}
      onChange={(height) => set({ height })}
    />
  );
}

const MAX_LINKS = 10;

function SocialSettings({ block }: { block: BlockOf<'social'> }) {
  const { t } = useTexts();
  const { design, isReadOnly } = useEditing();
  const set = useFieldChange(block);
  const { links } = block;
  const setLink = (index: number, changes: Partial<(typeof links)[number]>) =>
    set({ links: links.map((link, at) => (at === index ? { ...link, ...changes } : link)) }, `link ${index}`);
  return (
    <>
      {links.map(({ network, href }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: links have no other name
        <fieldset class="social-link" key={index} disabled={isReadOnly}>
          <legend class="unseen">{t('blocks.social.link', { number: index + 1 })}</legend>
          <select
            class="select"
            aria-label={t('blocks.social.network')}
            value={network}
            onChange={({ currentTarget: { value } }) => {
              if (isNetwork(value)) setLink(index, { network: value });
            }}
          >
            {Object.entries(NETWORK_NAMES).map(([name, text]) => (
              <option key={name} value={name}>
                {text}
              </option>
            ))}
          </select>
          <input
            class="input"
            aria-label={t('blocks.link.address')}
            aria-invalid={href !== '' && safeAddress(href) === null}
            placeholder="https://"
            inputMode="url"
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            maxLength={2000}
            value={href}
            onInput={({ currentTarget: { value } }) => setLink(index, { href: value })}
            onBlur={({ currentTarget: { value } }) => {
              const address = safeAddress(value);
              if (address !== null && address !== value) setLink(index, { href: address });
            }}
          />
          {links.length > 1 && (
            <button
              type="button"
              class="button ghost icon-only small"
              aria-label={t('blocks.social.remove', { name: NETWORK_NAMES[network] })}
              title={t('blocks.social.remove', { name: NETWORK_NAMES[network] })}
              onClick={() => set({ links: links.filter((_, at) => at !== index) }, '')}
            >
              <Icon name="x" />
            </button>
          )}
        </fieldset>
      ))}
      {links.length < MAX_LINKS && !isReadOnly && (
        <button
          type="button"
          class="button small settings-add"
          onClick={() => set({ links: [...links, { network: 'instagram', href: '' }] }, '')}
        >
          <Icon name="plus" />
          {t('blocks.social.add')}
        </button>
      )}
      <AlignField value={block.align} onChange={(align) => set({ align })} />
      <ColorField
        label={t('blocks.color.link')}
        value={block.color}
        standard={linkColorOn(design.theme.surface ?? '#ffffff', design.theme)}
        onChange={(color) => set({ color })}
      />
    </>
  );
}

function isNetwork(name: string): name is keyof typeof NETWORK_NAMES {
  return Object.hasOwn(NETWORK_NAMES, name);
}

const SPLITS = ['1:1', '1:2', '2:1'] as const;

function ColumnsSettings({ block }: { block: BlockOf<'columns'> }) {
  const { t } = useTexts();
  const { change } = useEditing();
  const set = useFieldChange(block);
  return (
    <>
      <Choice
        label={t('blocks.columns.count')}
        value={block.columns.length}
        options={[2, 3].map((value) => ({ value, text: String(value) }))}
        onChange={(count) => change(withColumnCount(block, count))}
      />
      {block.columns.length === 2 && (
        <Choice
          label={t('blocks.columns.split')}
          value={block.split ?? '1:1'}
          options={SPLITS.map((value) => ({ value, text: value.replace(':', ' : ') }))}
          onChange={(split) => set({ split })}
        />
      )}
      <Choice
        label={t('blocks.columns.valign')}
        value={block.valign ?? 'top'}
        options={(['top', 'middle'] as const).map((value) => ({ value, text: t(`blocks.columns.${value}`) }))}
        onChange={(valign) => set({ valign })}
      />
      <NumberField
        label={t('blocks.columns.gap')}
        value={block.gap ?? 24}
        min={0}
        max={48}
        onChange={(gap) => set({ gap })}
      />
    </>
  );
}

function FooterSettings({ block }: { block: BlockOf<'footer'> }) {
  const { t } = useTexts();
  const set = useFieldChange(block);
  return (
    <>
      <p class="small">{t('blocks.footer.kept')}</p>
      <AlignField value={block.align ?? 'center'} onChange={(align) => set({ align })} />
      <Tick
        label={t('blocks.footer.reportAbuse')}
        isOn={block.reportAbuse === true}
        onChange={(reportAbuse) => set({ reportAbuse })}
      />
    </>
  );
}

/** Space around a block, and the color behind it. */
function SpaceSettings({ block }: { block: Block }) {
  const { t } = useTexts();
  const { design } = useEditing();
  const set = useFieldChange(block);
  const place = placeOf(design, block.id);
  const list = place === null ? [] : listAt(design, place);
  const padding = paddingOf(block, {
    isColumn: place !== null && place.parent !== null,
    isFirst: place?.index === 0,
    isLast: place?.index === list.length - 1,
  });
  return (
    <details class="settings-more">
      <summary>{t('blocks.space')}</summary>
      <Pair>
        {(['top', 'bottom', 'left', 'right'] as const).map((side) => (
          <NumberField
            key={side}
            label={t(`blocks.space.${side}`)}
            value={padding[side]}
            min={0}
            max={96}
            onChange={(value) => set({ padding: { ...padding, [side]: value } }, `padding ${side}`)}
          />
        ))}
      </Pair>
      <ColorField
        label={t('blocks.color.background')}
        value={block.background}
        standard={block.type === 'footer' ? design.theme.background : (design.theme.surface ?? '#ffffff')}
        onChange={(background) => set({ background })}
      />
    </details>
  );
}

const FONTS: readonly Theme['font'][] = [
  'system',
  'arial',
  'verdana',
  'tahoma',
  'trebuchet',
  'georgia',
  'times',
  'courier',
];
/** Names of fonts are the same in every language, but for that of the device. */
const FONT_NAMES: Record<Exclude<Theme['font'], 'system'>, string> = {
  arial: 'Arial',
  verdana: 'Verdana',
  tahoma: 'Tahoma',
  trebuchet: 'Trebuchet',
  georgia: 'Georgia',
  times: 'Times',
  courier: 'Courier',
};

/** Colors, font and width of the whole mail, and its preview text. */
function MailSettings() {
  const { t } = useTexts();
  const { design, changeDesign, isReadOnly } = useEditing();
  const { theme } = design;
  const set = (name: string, changes: Changes<Theme>) =>
    changeDesign({ ...design, theme: withChanges(theme, changes) }, `theme ${name}`);
  const setDesign = (name: string, changes: Changes<Design>) =>
    changeDesign(withChanges(design, changes), `design ${name}`);
  const color = (name: 'accent' | 'background' | 'text') => (
    <ColorField
      label={t(`blocks.theme.${name}`)}
      value={theme[name]}
      onChange={(value) => {
        if (value !== undefined) set(name, { [name]: value });
      }}
    />
  );
  return (
    <>
      <Field label={t('blocks.preheader')} hint={t('blocks.preheader.hint')} isOptional>
        {(control) => (
          <input
            {...control}
            class="input"
            maxLength={200}
            autocomplete="off"
            readOnly={isReadOnly}
            value={design.preheader ?? ''}
            onInput={({ currentTarget: { value } }) =>
              setDesign('preheader', { preheader: value === '' ? undefined : value })
            }
          />
        )}
      </Field>
      {color('accent')}
      {color('background')}
      <ColorField
        label={t('blocks.theme.surface')}
        value={theme.surface}
        standard="#ffffff"
        onChange={(surface) => set('surface', { surface })}
      />
      {color('text')}
      <Field label={t('blocks.theme.font')}>
        {(control) => (
          <select
            {...control}
            class="select"
            disabled={isReadOnly}
            value={theme.font}
            onChange={({ currentTarget: { value } }) => {
              const font = FONTS.find((name) => name === value);
              if (font !== undefined) set('font', { font });
            }}
          >
            {FONTS.map((name) => (
              <option key={name} value={name}>
                {name === 'system' ? t('blocks.theme.font.system') : FONT_NAMES[name]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <NumberField
        label={t('blocks.theme.width')}
        value={theme.width}
        min={480}
        max={700}
        onChange={(width) => set('width', { width })}
      />
    </>
  );
}
