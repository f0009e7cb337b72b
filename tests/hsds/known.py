"""Files of the corpus that HSDS 1.0.2, h5pyd 1.0.0 and hsload do not keep as they are, and the defect that it comes from."""

NOT_IN_THE_SCHEMA = []
THROUGH_HSDS = []
FROM_HSLOAD = []
