import { useState } from 'preact/hooks';
import { useTexts } from '../../texts.ts';
import { Icon } from '../icon/icon.tsx';
import { imageAddress } from '../media-picker/image-address.ts';
import type { BlockOf } from './design.ts';

/** The address of an image of an account, under any of its link hosts. */
const OWN_IMAGE = /^https?:\/\/[^/]+\/m\/[\w-]+\.(?:png|jpe?g|gif|webp)$/;

/**
 * An image of a design. The policy of the console loads nothing from elsewhere, as it would count as an open: in place of
 * images that are not of the account is their description.
 */
export function MediaImage({ block: { src, alt } }: { block: BlockOf<'image'> }) {
  const { t } = useTexts();
  const [missing, setMissing] = useState('');
  if (OWN_IMAGE.test(src) && missing !== src)
    return <img src={imageAddress(src)} alt={alt} draggable={false} onError={() => setMissing(src)} />;
  return (
    <span class="view-lacking">
      <Icon name="image" />
      {src === '' ? t('blocks.image.none') : alt === '' ? hostOf(src) : alt}
    </span>
  );
}

/** The site of an address, for a short description. */
function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).host : address;
}
