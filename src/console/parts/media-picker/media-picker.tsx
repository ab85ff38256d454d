import { useTexts } from '../../texts.ts';
import { Drawer } from '../drawer.tsx';
import { Icon } from '../icon/icon.tsx';
import { type Media, MediaLibrary } from './media-library.tsx';

interface MediaPickerProps {
  /** Called with an image that was chosen, or uploaded: `url` is its address for recipients, `alt` its description. */
  onChoose: (media: Media) => void;
}

/** A button that opens the images of the account in a drawer; choosing one closes it. */
export function MediaPicker({ onChoose }: MediaPickerProps) {
  const { t } = useTexts();
  return (
    <Drawer
      title={t('media.pick')}
      buttonClass="button"
      button={
        <>
          <Icon name="image" />
          {t('media.pick')}
        </>
      }
    >
      {(close) => (
        <MediaLibrary
          isSingle
          onChoose={(media) => {
            onChoose(media);
            close();
          }}
        />
      )}
    </Drawer>
  );
}
