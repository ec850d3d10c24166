// Tests of ServiceCore.
