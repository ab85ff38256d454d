import { useTexts } from '../../texts.ts';
import { Field } from '../field.tsx';
import { MediaPicker } from '../media-picker/media-picker.tsx';
import { BlockAddress } from './address-field.tsx';
import type { BlockOf } from './design.ts';
import { useEditing, useFieldChange } from './editing.ts';
import { AlignField, NumberField, Pair, Tick } from './fields.tsx';

/** An image is at first as wide as the content of a mail of the usual width. */
const MAX_WIDTH = 536;
const MAX_HEIGHT = 4000;

/** Which image it is, what it shows, and where it leads to. */
export function ImageSettings({ block }: { block: BlockOf<'image'> }) {
  const { t } = useTexts();
  const { isReadOnly, isUndescribed: isMissing, setDescribed } = useEditing();
  const set = useFieldChange(block);
  const isUndescribed = isMissing(block);
  return (
    <>
      {!isReadOnly && (
        <div class="settings-add">
          <MediaPicker
            onChoose={({ url, alt, width, height }) => {
              const shown = Math.min(width, MAX_WIDTH);
              set(
                {
                  src: url,
                  alt: block.alt === '' ? alt.slice(0, 300) : block.alt,
                  width: shown,
                  height: heightFor(shown, { width, height }),
                },
                '',
              );
            }}
          />
        </div>
      )}
      <Field label={t('blocks.image.address')}>
        {(control) => (
          <input
            {...control}
            class="input"
            type="url"
            placeholder="https://"
            autocomplete="off"
            spellcheck={false}
            maxLength={2000}
            readOnly={isReadOnly}
            value={block.src}
            onInput={({ currentTarget: { value } }) => set({ src: value.trim() })}
          />
        )}
      </Field>
      <Field
        label={t('blocks.image.alt')}
        hint={t('blocks.image.alt.hint')}
        {...(isUndescribed ? { error: t('blocks.image.alt.missing') } : {})}
      >
        {(control) => (
          <textarea
            {...control}
            class="textarea image-alt"
            rows={2}
            maxLength={300}
            readOnly={isReadOnly}
            disabled={!isUndescribed && block.alt === ''}
            value={block.alt}
            onInput={({ currentTarget: { value } }) => {
              set({ alt: value.replaceAll(/\s+/g, ' ') });
              // Not a decoration, which only the box below makes of it.
              if (value === '') setDescribed(block.id, false);
            }}
          />
        )}
      </Field>
      <Tick
        label={t('blocks.image.decorative')}
        isOn={!isUndescribed && block.alt === ''}
        onChange={(isDecorative) => {
          if (isDecorative) set({ alt: '' });
          setDescribed(block.id, isDecorative);
        }}
      />
      <BlockAddress
        label={t('blocks.image.link')}
        value={block.href ?? ''}
        onChange={(href) => set({ href: href === '' ? undefined : href })}
      />
      <AlignField value={block.align} onChange={(align) => set({ align })} />
      <Pair>
        <NumberField
          label={t('blocks.theme.width')}
          value={block.width}
          min={1}
          max={2000}
          onChange={(width) => set({ width, height: heightFor(width, block) })}
        />
        <NumberField
          label={t('blocks.height')}
          value={block.height}
          min={1}
          max={MAX_HEIGHT}
          onChange={(height) => set({ height })}
        />
      </Pair>
      <NumberField
        label={t('blocks.radius')}
        value={block.radius ?? 0}
        min={0}
        max={30}
        onChange={(radius) => set({ radius })}
      />
    </>
  );
}

/** The height with which an image keeps its shape at another width. */
function heightFor(shown: number, { width, height }: { width: number; height: number }): number {
  return Math.max(1, Math.min(MAX_HEIGHT, Math.round((height * shown) / width)));
}
